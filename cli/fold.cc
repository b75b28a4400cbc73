// perhaps fold: halves a filter, once or several times.
#include "command.h"
#include "filter_file.h"
#include "json.h"
#include "options.h"
#include "print.h"

namespace perhaps::cli {
namespace fold {
namespace {

struct Options {
  std::string filter;
  std::string output;
  Keyed keyed;
  std::uint32_t times = 1;
  bool json = false;
};

int run(const Options& options) {
  check_output(options.output);
  std::unique_ptr<AnyMutable> filter;
  Record record;
  {
    const Opened opened = open_filter(options.filter, {.keyed = options.keyed});
    record = opened.file.header().record;
    filter = load_filter(opened.file);
  }
  for (std::uint32_t i = 0; i < options.times; ++i) {
    auto half = filter->fold();
    if (!half)
      fail("{}: cannot be folded{}: {}", options.filter, i == 0 ? "" : fmt::format(" {} times", i + 1),
           half.error().detail);
    filter = *std::move(half);
    // Half the bits are right for half the keys.
    if (record.capacity != 0) record.capacity = std::max<std::uint64_t>(1, record.capacity / 2);
  }
  save_filter(*filter, options.output, record);
  const Description d = filter->describe();
  if (options.json) {
    Json json;
    json.add("file", options.output)
        .add("keys", record.keys)
        .add("bytes", d.bytes)
        .add("fill", d.fill)
        .add("fpr", d.fpr);
    Out().write(json.text() + "\n");
  } else {
    Out().write(fmt::format("{}: {} bytes, fpr {}\n", options.output, grouped(d.bytes), percent(d.fpr)));
  }
  return kYes;
}

}  // namespace
}  // namespace fold

Command::Run fold_command(CLI::App& app) {
  auto options = std::make_shared<fold::Options>();
  app.add_option("filter", options->filter, "The filter file")->type_name("FILTER")->required();
  app.add_option("-o,--output", options->output, "The file to write")->type_name("FILE")->required();
  add_count(app, "--times", options->times, "N", "How often to halve; default: 1");
  declare_json(app, options->json);
  declare_keyed(app, options->keyed);
  return [options] { return fold::run(*options); };
}

}  // namespace perhaps::cli
