// A command as text: what help, man page and completions are made of, for the commands of the table and for programs
// beside the tool, which describe theirs in lines.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "command.h"

namespace perhaps::cli {

struct OptionText {
  std::vector<std::string> names;  // "-o", "--output"; empty for a positional
  std::string value;               // FILE, N, line|block|classic; empty for a flag
  std::string text;
  std::string group;
  bool required = false;
  bool many = false;

  bool positional() const { return names.empty(); }
  // A long list of words would hide everything else; completions have them all.
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
  // The first clause: what fits beside a completion.
  std::string short_text() const {
    return text.substr(0, std::min({text.find("; "), text.find(". "), text.find(": ")}));
  }
};

struct FieldText {
  std::string name, type, text;
};
struct ShapeText {
  std::string when, form;
  std::vector<FieldText> fields;
};

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

// In the order in which help shows them.
std::vector<OptionText> options_of(const Command& command);

// The visible commands of the table, then those that the files `with` describe (description_of).
std::vector<CommandText> shown_commands(const std::vector<std::string>& with);

}  // namespace perhaps::cli
