// Help, man page and completions: all from the command table and the options that each command declares. A program
// beside the tool describes its command in lines (description_of), which the tool adds to its page and completions.
#include <algorithm>
#include <fstream>
#include <memory>

#include "command.h"
#include "options.h"
#include "print.h"

namespace perhaps::cli {
namespace {

constexpr const char* kHelpText = "Print this help";

struct OptionText {
  std::vector<std::string> names;  // "-o", "--output"; empty for a positional
  std::string value;               // FILE, N, line|block|classic; empty for a flag
  std::string text;
  std::string group;
  bool required = false;
  bool many = false;

  bool positional() const { return names.empty(); }
  // A long list of words would drown what is said of it; completions have them all.
  std::string shown() const { return value.size() > 40 ? "NAME" : value; }
  bool takes_file() const { return value == "FILE" || value == "FILTER"; }
  std::vector<std::string> choices() const {
    std::vector<std::string> words;
    if (value.find('|') == std::string::npos) return words;
    for (std::size_t from = 0; from <= value.size();) {
      const std::size_t to = std::min(value.find('|', from), value.size());
      words.push_back(value.substr(from, to - from));
      from = to + 1;
    }
    return words;
  }
  // Up to the first stop: what fits beside a completion.
  std::string short_text() const {
    return text.substr(0, std::min({text.find("; "), text.find(". "), text.find(": ")}));
  }
};

std::vector<OptionText> options_of(const Command& command) {
  CLI::App app;
  const Command::Run keeps_values_alive = command.declare(app);
  std::vector<OptionText> result;
  for (const CLI::Option* option : app.get_options()) {
    OptionText o;
    for (const auto& name : option->get_snames()) o.names.push_back("-" + name);
    for (const auto& name : option->get_lnames()) o.names.push_back("--" + name);
    o.value = option->get_items_expected_max() == 0 ? "" : option->get_type_name();
    o.text = option == app.get_help_ptr() ? kHelpText : option->get_description();
    o.group = option->get_group();
    o.required = option->get_required();
    o.many = option->get_items_expected_max() > 1;
    result.push_back(std::move(o));
  }
  const auto rank = [](const OptionText& o) {
    if (o.positional()) return 0;
    if (o.text == kHelpText) return 2;
    return o.group == "Options" ? 1 : 3;
  };
  std::stable_sort(result.begin(), result.end(),
                   [&](const OptionText& a, const OptionText& b) { return rank(a) < rank(b); });
  return result;
}

struct FieldText {
  std::string name, type, text;
};
struct ShapeText {
  std::string when, form;
  std::vector<FieldText> fields;
};

std::string_view form_text(JsonShape::Form form) {
  return form == JsonShape::object  ? "an object"
         : form == JsonShape::array ? "an array of objects"
                                    : "an object on each line";
}

// A command as the page and the completions show it.
struct CommandText {
  std::string name;  // "sst"; "bench lsm" is a program behind a command
  std::string summary, detail;
  std::vector<OptionText> options;
  std::vector<std::string> examples;
  std::vector<ShapeText> json;

  std::string first_word() const { return name.substr(0, name.find(' ')); }
  std::string second_word() const { return name.size() == first_word().size() ? "" : name.substr(name.find(' ') + 1); }
};

CommandText text_of(const Command& command) {
  CommandText text{std::string(command.name),
                   std::string(command.summary),
                   std::string(command.detail),
                   options_of(command),
                   {command.examples.begin(), command.examples.end()},
                   {}};
  for (const JsonShape& shape : command.json) {
    text.json.push_back({std::string(shape.when), std::string(form_text(shape.form)), {}});
    for (const JsonField& field : shape.fields)
      text.json.back().fields.push_back({std::string(field.name), std::string(field.type), std::string(field.text)});
  }
  return text;
}

// Back from the lines of description_of.
CommandText read_description(const std::string& path) {
  std::ifstream in(path);
  CommandText command;
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> fields;
    for (std::size_t from = 0; from <= line.size();) {
      const std::size_t to = std::min(line.find('\t', from), line.size());
      fields.push_back(line.substr(from, to - from));
      from = to + 1;
    }
    if (fields.size() == 4 && fields[0] == "command") {
      command.name = fields[1];
      command.summary = fields[2];
      command.detail = fields[3];
    } else if (fields.size() == 3 && fields[0] == "json") {
      command.json.push_back({fields[1], fields[2], {}});
    } else if (fields.size() == 4 && fields[0] == "field" && !command.json.empty()) {
      command.json.back().fields.push_back({fields[1], fields[2], fields[3]});
    } else if (fields.size() == 2 && fields[0] == "example") {
      command.examples.push_back(fields[1]);
    } else if (fields.size() == 7 && fields[0] == "option") {
      OptionText o{.names = {}, .value = fields[2], .text = fields[3], .group = fields[4]};
      for (std::size_t from = 0; from < fields[1].size();) {
        const std::size_t to = std::min(fields[1].find(' ', from), fields[1].size());
        o.names.push_back(fields[1].substr(from, to - from));
        from = to + 1;
      }
      o.required = fields[5] == "required";
      o.many = fields[6] == "many";
      command.options.push_back(std::move(o));
    } else {
      fail("{}: '{}' describes no command", path, line);
    }
  }
  if (command.name.empty()) fail("{}: describes no command", path);
  return command;
}

// The visible commands of the table, then those that `with` describes.
std::vector<CommandText> shown_commands(const std::vector<std::string>& with) {
  std::vector<CommandText> shown;
  for (const Command& command : commands()) {
    if (!command.hidden) shown.push_back(text_of(command));
  }
  for (const std::string& path : with) shown.push_back(read_description(path));
  return shown;
}

std::string usage_of(std::string_view name, const std::vector<OptionText>& options) {
  std::string line = "perhaps " + std::string(name);
  for (const auto& o : options) {
    if (!o.positional() && o.required) line += fmt::format(" {} {}", o.names[0], o.shown());
  }
  line += " [options]";
  for (const auto& o : options) {
    if (!o.positional()) continue;
    line += fmt::format(" {}{}", o.required ? o.value : fmt::format("[{}]", o.value), o.many ? "..." : "");
  }
  return line;
}

// Breaks at spaces before column 80.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t column) {
  constexpr std::size_t kWidth = 79;
  std::string out;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    if (column != indent && column + 1 + space > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column != indent) {
      out += ' ';
      ++column;
    }
    out += text.substr(0, space);
    column += space;
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return out + "\n";
}

std::string left_of(const OptionText& o) {
  if (o.positional()) return o.value;
  const std::string names = fmt::format("{}", fmt::join(o.names, ", "));
  const std::string aligned = names.starts_with("--") ? "    " + names : names;
  return o.value.empty() ? aligned : aligned + " " + o.shown();
}

std::string entry(std::string_view left, std::string_view text, std::size_t indent) {
  std::string out = "  " + std::string(left);
  if (out.size() + 2 > indent) {
    out += "\n" + std::string(indent, ' ');
  } else {
    out.resize(indent, ' ');
  }
  return out + wrapped(text, indent, indent);
}

// --- roff

std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += std::string("\\&") + c;
    } else {
      out += c;
    }
  }
  return out;
}

// "number or null?" in words.
std::string type_text(std::string type) {
  const bool optional = type.ends_with('?');
  if (optional) type.pop_back();
  if (type == "strings") type = "object of strings";
  return optional ? type + ", or missing" : type;
}

std::string man_json(const CommandText& command) {
  std::string out;
  for (const ShapeText& shape : command.json) {
    const std::string_view where = command.name == "dedup" ? ", on standard error" : "";
    out += fmt::format(".PP\n\\fB\\-\\-json\\fR{} prints {}{}:\n",
                       shape.when.empty() ? "" : roff(fmt::format(" ({})", shape.when)), shape.form, where);
    for (const FieldText& field : shape.fields) {
      out += fmt::format(".br\n\\fB{}\\fR (\\fI{}\\fR){}\n", roff(field.name), type_text(field.type),
                         field.text.empty() ? "" : ": " + roff(field.text));
    }
  }
  return out;
}

std::string man_page(const std::vector<CommandText>& shown) {
  std::string out = fmt::format(
      ".TH PERHAPS 1 \"\" \"perhaps {}\" \"User Commands\"\n.SH NAME\nperhaps \\- approximate membership: could this "
      "key be "
      "in that set?\n.SH SYNOPSIS\n",
      PERHAPS_VERSION);
  for (const CommandText& command : shown)
    out += fmt::format(".B {}\n.br\n", roff(usage_of(command.name, command.options)));
  out +=
      ".SH DESCRIPTION\nA filter is a small file made from a set of keys. For any key it answers\n.I "
      "perhaps\nor\n.IR no :\n"
      "\"no\" is certain, \"perhaps\" is wrong at a rate that was chosen when the filter was made, and no key of the "
      "set "
      "is ever missed.\n.PP\nSizes and counts may be written 1000000, 1e6, 1.5M (k, M, G, T: powers of 1000) or 64Mi "
      "(Ki, Mi, "
      "Gi, Ti: powers of 1024). With\n.B \\-\\-json\na command prints what is listed below it, for programs: names and "
      "types of fields stay as they are, and later versions may add fields. A command that is not "
      "listed here is looked for as a program\n.BI perhaps\\- "
      "COMMAND\nbeside "
      "this one, in libexec/perhaps, and in PATH.\n.SH COMMANDS\n";
  for (const CommandText& command : shown) {
    std::string summary = command.summary;
    summary[0] = static_cast<char>(summary[0] - 'a' + 'A');
    out += fmt::format(".SS {}\n.B {}\n.PP\n{}.\n", command.name, roff(usage_of(command.name, command.options)),
                       roff(summary));
    if (!command.detail.empty()) out += roff(command.detail) + "\n";
    for (const auto& o : command.options) {
      if (o.positional()) {
        out += fmt::format(".TP\n.I {}\n{}.\n", roff(o.value), roff(o.text));
      } else {
        std::vector<std::string> names;
        for (const auto& name : o.names) names.push_back("\\fB" + roff(name) + "\\fR");
        out += fmt::format(".TP\n{}{}\n{}.\n", fmt::join(names, ", "),
                           o.value.empty() ? "" : " \\fI" + roff(o.shown()) + "\\fR", roff(o.text));
      }
    }
    out += man_json(command);
    if (!command.examples.empty()) {
      out += ".PP\nExamples:\n.PP\n.nf\n";
      for (const auto& example : command.examples) out += ".RS\n" + roff(example) + "\n.RE\n";
      out += ".fi\n";
    }
  }
  out +=
      ".SH EXIT STATUS\n.TP\n.B 0\nDone; for\n.B query\nand\n.BR route :\nsome key was selected.\n.TP\n.B 1\n"
      ".BR query :\nno key was selected;\n.BR route :\nno key is in any set;\n"
      ".BR map :\nno key was found;\n"
      ".BR advise :\nno family can do all that is needed;\n.BR verify :\na key is missing;\n"
      ".BR sst :\na filter denies a key of its table.\n"
      ".TP\n.B 2\nAn error; no file was changed.\n.TP\n.BR 130 , \" 143\"\n"
      "Interrupted by Ctrl\\-C or SIGTERM; no file was changed.\n"
      ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nIf set, nothing is printed in bold, not even on a terminal.\n.TP\n.B "
      "PERHAPS_ISA\n"
      "Forces a batch kernel, such as\n.BR portable .\n";
  return out;
}

// --- completions

std::string joined_first_words(const std::vector<CommandText>& shown) {
  std::vector<std::string> words;
  for (const CommandText& command : shown) {
    if (command.second_word().empty()) words.push_back(command.name);
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::string bash_completion(const std::vector<CommandText>& shown) {
  std::string out = fmt::format(
      "# bash completion for perhaps\n_perhaps() {{\n  local cur=${{COMP_WORDS[COMP_CWORD]}} "
      "prev=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}\n  COMPREPLY=()\n  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W \"{} help --help --version\" -- \"$cur\"))\n    return\n  fi\n",
      joined_first_words(shown));
  for (const CommandText& command : shown) {
    const std::string first = command.first_word(), second = command.second_word();
    if (second.empty()) continue;
    out += fmt::format(
        "  if [[ $command == {0} && $cur != -* ]] && ((COMP_CWORD == 2)); then\n    COMPREPLY=($(compgen -W {1} -- "
        "\"$cur\"))\n    return\n  fi\n  [[ $command == {0} && ${{COMP_WORDS[2]}} == {1} ]] && command=\"{0} {1}\"\n",
        first, second);
  }
  out += "  case $command:$prev in\n";
  std::string flags;
  for (const CommandText& command : shown) {
    std::vector<std::string> names;
    for (const auto& o : command.options) {
      if (o.positional()) continue;
      for (const auto& name : o.names) names.push_back(name);
      std::vector<std::string> patterns;
      for (const auto& name : o.names) patterns.push_back(fmt::format("\"{}:{}\"", command.name, name));
      if (const auto choices = o.choices(); !choices.empty()) {
        out += fmt::format("    {})\n      COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"))\n      return ;;\n",
                           fmt::join(patterns, "|"), fmt::join(choices, " "));
      } else if (!o.value.empty()) {
        out += fmt::format("    {})\n      return ;;\n", fmt::join(patterns, "|"));
      }
    }
    flags += fmt::format("    \"{}\") COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")) ;;\n", command.name,
                         fmt::join(names, " "));
  }
  // An empty reply leaves file names to readline (-o default).
  return out + "  esac\n  [[ $cur == -* ]] || return\n  case $command in\n" + flags +
         "  esac\n}\ncomplete -o default -F _perhaps perhaps\n";
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string zsh_completion(const std::vector<CommandText>& shown) {
  const auto quoted = [](std::string text) {
    for (const char* c : {"[", "]", ":"}) text = replaced(text, c, std::string("\\") + c);
    return replaced(text, "'", "'\\''");
  };
  std::string out = "#compdef perhaps\n_perhaps() {\n  local -a commands=(\n";
  std::string behind;
  for (const CommandText& command : shown) {
    const std::string first = command.first_word(), second = command.second_word();
    if (second.empty()) {
      out += fmt::format("    '{}:{}'\n", command.name, quoted(command.summary));
    } else {
      behind += fmt::format(
          "  if [[ $command == {0} && $words[2] == {1} ]] && ((CURRENT > 2)); then\n    command='{0} {1}'\n    shift "
          "words\n    ((CURRENT--))\n  fi\n",
          first, second);
    }
  }
  out +=
      "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n  local command=$words[2]\n "
      " shift words\n  ((CURRENT--))\n" +
      behind + "  case $command in\n";
  for (const CommandText& command : shown) {
    out += fmt::format("    '{}')\n      _arguments -s", command.name);
    for (const CommandText& other : shown) {
      if (other.first_word() == command.name && !other.second_word().empty())
        out += fmt::format(" \\\n        '1::program:({})'", other.second_word());
    }
    int place = 1;
    for (const auto& o : command.options) {
      const auto choices = o.choices();
      const std::string action = !choices.empty() ? fmt::format("({})", fmt::join(choices, " "))
                                 : o.takes_file() ? "_files"
                                                  : "";
      const std::string value =
          o.value.empty() ? "" : fmt::format(":{}:{}", choices.empty() ? o.value : "word", action);
      const std::string repeat = o.many ? "*" : "";
      if (o.positional()) {
        out += fmt::format(" \\\n        '{}{}'", o.many ? "*" : std::to_string(place++), value);
      } else if (o.names.size() == 1) {
        out += fmt::format(" \\\n        '{}{}[{}]{}'", repeat, o.names[0], quoted(o.short_text()), value);
      } else {
        out += fmt::format(" \\\n        {}{{{}}}'[{}]{}'",
                           o.many ? "'*'" : fmt::format("'({})'", fmt::join(o.names, " ")), fmt::join(o.names, ","),
                           quoted(o.short_text()), value);
      }
    }
    out += " ;;\n";
  }
  return out + "  esac\n}\n_perhaps \"$@\"\n";
}

std::string fish_completion(const std::vector<CommandText>& shown) {
  const auto quoted = [](std::string text) {
    return "'" + replaced(replaced(std::move(text), "\\", "\\\\"), "'", "\\'") + "'";
  };
  std::string out = "# fish completion for perhaps\n";
  for (const CommandText& command : shown) {
    const std::string first = command.first_word(), second = command.second_word();
    std::string when = "__fish_seen_subcommand_from " + first;
    if (second.empty()) {
      out +=
          fmt::format("complete -c perhaps -f -n __fish_use_subcommand -a {} -d {}\n", first, quoted(command.summary));
      for (const CommandText& other : shown) {
        if (other.first_word() == first && !other.second_word().empty())
          when += "; and not __fish_seen_subcommand_from " + other.second_word();
      }
    } else {
      out += fmt::format("complete -c perhaps -f -n '{}; and not __fish_seen_subcommand_from {}' -a {} -d {}\n", when,
                         second, second, quoted(command.summary));
      when += "; and __fish_seen_subcommand_from " + second;
    }
    for (const auto& o : command.options) {
      if (o.positional()) continue;
      out += fmt::format("complete -c perhaps -n '{}'", when);
      for (const auto& name : o.names) {
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (const auto choices = o.choices(); !choices.empty()) {
        out += fmt::format(" -x -a '{}'", fmt::join(choices, " "));
      } else if (o.takes_file()) {
        out += " -r -F";
      } else if (!o.value.empty()) {
        out += " -x";
      }
      out += " -d " + quoted(o.short_text()) + "\n";
    }
  }
  return out;
}

}  // namespace

std::string help_of_all() {
  std::string out = bold("perhaps") + ": could this key be in that set? A filter answers perhaps or no.\n\n";
  out += bold("Usage:") + " perhaps COMMAND [options] ...\n\n" + bold("Commands:") + "\n";
  for (const Command& command : commands()) {
    if (!command.hidden) out += entry(command.name, command.summary, 12);
  }
  if (auto others = other_commands(); !others.empty()) {
    // perhaps-bench-lsm is typed `perhaps bench lsm`.
    for (std::string& other : others) {
      if (other.starts_with("bench-")) other[5] = ' ';
    }
    out += "\n" + bold("Programs beside it, each with a --help of its own:") + "\n  " +
           wrapped(fmt::format("{}", fmt::join(others, ", ")), 2, 2);
  }
  out += "\n" + bold("To begin:") + "\n";
  for (const char* name : {"build", "query", "info"}) out += "  " + std::string(find_command(name)->examples[0]) + "\n";
  return out + "\nperhaps COMMAND --help tells more, as does man perhaps; perhaps --version.\n";
}

std::string help_of(const Command& command) {
  const auto options = options_of(command);
  const std::string usage = usage_of(command.name, options);
  std::string out = bold("perhaps " + std::string(command.name)) + ": " + std::string(command.summary) + "\n\n";
  out += bold("Usage:") + " " + usage + "\n";
  if (!command.detail.empty()) out += "\n" + wrapped(command.detail, 0, 0);
  std::string group;
  out += "\n";
  for (const auto& o : options) {
    if (o.positional()) out += entry(left_of(o), o.text, 24);
  }
  for (const auto& o : options) {
    if (o.positional()) continue;
    if (o.group != group) out += "\n" + bold(o.group + ":") + "\n";
    group = o.group;
    out += entry(left_of(o), o.text, 24);
  }
  if (!command.examples.empty()) out += "\n" + bold("Examples:") + "\n";
  for (const auto& example : command.examples) out += fmt::format("  {}\n", example);
  return out;
}

std::string description_of(const Command& command) {
  std::string out = fmt::format("command\t{}\t{}\t{}\n", command.name, command.summary, command.detail);
  for (const OptionText& o : options_of(command)) {
    out += fmt::format("option\t{}\t{}\t{}\t{}\t{}\t{}\n", fmt::join(o.names, " "), o.value, o.text, o.group,
                       o.required ? "required" : "", o.many ? "many" : "");
  }
  for (const auto& example : command.examples) out += fmt::format("example\t{}\n", example);
  for (const JsonShape& shape : command.json) {
    out += fmt::format("json\t{}\t{}\n", shape.when, form_text(shape.form));
    for (const JsonField& field : shape.fields)
      out += fmt::format("field\t{}\t{}\t{}\n", field.name, field.type, field.text);
  }
  return out;
}

Command::Run man_command(CLI::App& app) {
  auto with = std::make_shared<std::vector<std::string>>();
  app.add_option("--with", *with, "Also the command that this file describes")->type_name("FILE");
  return [with] {
    Out().write(man_page(shown_commands(*with)));
    return kYes;
  };
}

Command::Run completion_command(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  auto with = std::make_shared<std::vector<std::string>>();
  add_words(app, "shell", *shell, {"bash", "zsh", "fish"}, "Which shell")->required();
  app.add_option("--with", *with, "Also the command that this file describes")->type_name("FILE");
  return [shell, with] {
    const auto shown = shown_commands(*with);
    Out().write(*shell == "bash"  ? bash_completion(shown)
                : *shell == "zsh" ? zsh_completion(shown)
                                  : fish_completion(shown));
    return kYes;
  };
}

}  // namespace perhaps::cli
