#include "command_text.h"

#include <algorithm>
#include <fstream>

namespace perhaps::cli {
namespace {

constexpr const char* kHelpText = "Print this help";

std::string_view form_text(JsonShape::Form form) {
  return form == JsonShape::object  ? "an object"
         : form == JsonShape::array ? "an array of objects"
                                    : "an object on each line";
}

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

}  // namespace

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

std::vector<CommandText> shown_commands(const std::vector<std::string>& with) {
  std::vector<CommandText> shown;
  for (const Command& command : commands()) {
    if (!command.hidden) shown.push_back(text_of(command));
  }
  for (const std::string& path : with) shown.push_back(read_description(path));
  return shown;
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

}  // namespace perhaps::cli
