// Help and the man page: from the command table and the options that each command declares.
#include <algorithm>
#include <memory>

#include "command_text.h"
#include "print.h"

namespace perhaps::cli {
namespace {

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
      ".SH EXIT STATUS\n.TP\n.B 0\nDone; for those that look keys up: some key was selected.\n.TP\n.B 1\n"
      ".BR query :\nno key was selected;\n.BR explain :\nno answer is perhaps;\n"
      ".BR route :\nno key is in any set;\n.BR map :\nno key was found;\n"
      ".BR exact :\nan update is not smaller than the whole set;\n"
      ".BR advise :\nno family can do all that is needed;\n"
      ".BR verify :\na key is missing, an exact answer is wrong, or something differs from the certificate;\n"
      ".BR sst :\na filter denies a key of its table.\n"
      ".TP\n.B 2\nAn error; no filter was changed.\n.TP\n.BR 130 , \" 143\"\n"
      "Interrupted by Ctrl\\-C or SIGTERM; no filter was changed, but\n.B dedup \\-\\-seen\nsaves what was seen.\n"
      ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nIf set, nothing is printed in bold, not even on a terminal.\n.TP\n.B "
      "PERHAPS_ISA\n"
      "Forces a batch kernel, such as\n.BR portable .\n";
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

Command::Run man_command(CLI::App& app) {
  auto with = std::make_shared<std::vector<std::string>>();
  app.add_option("--with", *with, "Also the command that this file describes")->type_name("FILE");
  return [with] {
    Out().write(man_page(shown_commands(*with)));
    return kYes;
  };
}

}  // namespace perhaps::cli
