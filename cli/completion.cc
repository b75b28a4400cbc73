// perhaps completion: for bash, zsh and fish, from the texts of all commands.
#include <memory>

#include "command_text.h"
#include "options.h"
#include "print.h"

namespace perhaps::cli {
namespace {

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
