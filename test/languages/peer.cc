// The lab in C++: peer write NAME FOLDER, peer read FOLDER FILE...
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "perhaps/any_filter.h"
#include "perhaps/file/container.h"
#include "perhaps/file/mapping.h"
#include "perhaps/file/writer.h"
#include "perhaps/format/format.h"

namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

template <class T>
T take(perhaps::Result<T> result) {
  if (result) return *std::move(result);
  std::cerr << result.error().detail << '\n';
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  const bool writes = args.at(0) == "write";
  const auto lines = lines_of(args.at(writes ? 2 : 1) + (writes ? "/keys" : "/probes"));
  std::vector<perhaps::Bytes> keys;
  for (const std::string& line : lines) keys.push_back(perhaps::bytes_of(line));
  const perhaps::format::Codec& lab = *perhaps::format::find("lab");
  if (writes) {
    const std::string path = args[2] + "/" + args[1] + ".";
    const auto bytes = take(lab.build(keys, perhaps::format::Params(lab)));
    if (!perhaps::write_file(path + "lab", bytes)) return 1;
    for (const perhaps::Kind kind : {perhaps::Kind::line, perhaps::Kind::ribbon}) {
      const auto builder = take(perhaps::make_builder(kind, {.keys = keys.size()}, perhaps::Hash()));
      {
        const auto lanes = builder->lanes(1);
        if (!lanes[0]->insert(keys)) return 1;
      }
      const auto filter = take(builder->finish());
      if (!filter->save(path + std::string(perhaps::name_of(kind)), filter->record())) return 1;
    }
    return 0;
  }
  for (std::size_t i = 2; i < args.size(); ++i) {
    std::string answers;
    const auto query = [&](const perhaps::AnyFilter& filter) {
      for (const perhaps::Bytes key : keys) answers += filter.may_contain(key) ? '1' : '0';
    };
    if (args[i].ends_with(".lab")) {
      const auto mapping = take(perhaps::Mapping::open(args[i]));
      const auto opened = take(lab.open({.bytes = mapping.bytes()}, perhaps::format::Params(lab)));
      query(*opened.whole);
    } else {
      const auto file = take(perhaps::File::open(args[i]));
      query(*file.any());
    }
    std::cout << answers << '\n';
  }
}
