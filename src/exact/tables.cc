#include "exact/tables.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

namespace perhaps {

Bytes ExactParts::of(Bytes key) const noexcept {
  const auto between = static_cast<std::byte>(delimiter);
  for (std::uint32_t i = 1; i < field; ++i) {
    const auto at = std::find(key.begin(), key.end(), between);
    if (at == key.end()) return {};
    key = key.subspan(static_cast<std::size_t>(at - key.begin()) + 1);
  }
  return key.first(static_cast<std::size_t>(std::find(key.begin(), key.end(), between) - key.begin()));
}

namespace detail {
namespace {

Error bad(const std::string& fact) { return {Errc::bad_parameter, "exact: " + fact}; }

// Takes numbers off the front; past the end they are missing.
class Numbers {
 public:
  explicit Numbers(std::span<const std::uint64_t> all) : left_(all) {}
  std::uint64_t next() {
    if (left_.empty()) {
      missing_ = true;
      return 0;
    }
    const std::uint64_t number = left_[0];
    left_ = left_.subspan(1);
    return number;
  }
  std::span<const std::uint64_t> some() {
    const std::uint64_t count = next();
    if (count > left_.size()) {
      missing_ = true;
      return {};
    }
    const auto taken = left_.first(static_cast<std::size_t>(count));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  bool missing() const noexcept { return missing_; }
  bool empty() const noexcept { return left_.empty(); }

 private:
  std::span<const std::uint64_t> left_;
  bool missing_ = false;
};

class Sections {
 public:
  explicit Sections(std::span<const Bytes> all) : left_(all) {}
  Result<Bytes> next(const char* what) {
    if (left_.empty()) return bad(std::string("the section of ") + what + " is missing");
    const Bytes section = left_[0];
    left_ = left_.subspan(1);
    return section;
  }
  bool empty() const noexcept { return left_.empty(); }

 private:
  std::span<const Bytes> left_;
};

// Codes are known, the directory ascends, and every code that needs a filter has one.
Result<void> check_codes(const ExactLayer& layer) {
  const auto check = [&](std::uint64_t code) -> Result<void> {
    if (!is_code(code)) return bad("unknown code " + std::to_string(code));
    const auto as = static_cast<ExactCode>(code);
    if (!is_constant(as) && columns_of(as) != 0 && layer.stage_of(as) == nullptr) {
      return bad("no filter has the code " + std::to_string(code));
    }
    return {};
  };
  if (auto known = check(layer.rest); !known) return known;
  const std::uint64_t count = layer.part_count();
  const std::byte* const codes = layer.directory.data() + 8 * count;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i != 0 && load<std::uint64_t>(layer.directory.data() + 8 * i) <=
                      load<std::uint64_t>(layer.directory.data() + 8 * (i - 1))) {
      return bad("the directory of parts is out of order");
    }
    if (auto known = check(static_cast<std::uint64_t>(codes[i])); !known) return known;
  }
  return {};
}

Result<ExactLayer> read_layer(Numbers& numbers, Sections& sections) {
  ExactLayer layer;
  layer.members = numbers.next();
  layer.universe = numbers.next();
  const std::uint64_t field = numbers.next();
  const std::uint64_t delimiter = numbers.next();
  const std::uint64_t rest = numbers.next();
  const std::uint64_t parts = numbers.next();
  const std::uint64_t stages = numbers.next();
  if (numbers.missing()) return bad("too few numbers");
  if (layer.members > layer.universe) return bad("more members than keys in the universe");
  if (field > UINT32_MAX || delimiter > 255) return bad("a field outside its range");
  if (field == 0 && parts != 0) return bad("parts without a field");
  if (!is_code(rest)) return bad("unknown code " + std::to_string(rest));
  layer.parts = {.field = static_cast<std::uint32_t>(field), .delimiter = static_cast<char>(delimiter)};
  layer.rest = static_cast<ExactCode>(rest);
  if (parts != 0) {
    const auto directory = sections.next("parts");
    if (!directory) return directory.error();
    if (directory->size() % 9 != 0 || directory->size() / 9 != parts) return bad("a directory of another size");
    layer.directory = *directory;
  }
  for (std::uint64_t i = 0; i < stages; ++i) {
    const std::uint64_t code = numbers.next();
    const auto shape_numbers = numbers.some();
    if (numbers.missing()) return bad("too few numbers");
    if (!is_code(code) || columns_of(static_cast<ExactCode>(code)) == 0 || is_constant(static_cast<ExactCode>(code)) ||
        (i != 0 && code <= layer.stages.back().code)) {
      return bad("a filter of the code " + std::to_string(code));
    }
    const auto shape = RibbonShape::from(shape_numbers);
    if (!shape) return bad(shape.error().detail);
    if (shape->columns != columns_of(static_cast<ExactCode>(code)) || shape->wide != 0) {
      return bad("a filter of other columns than its code says");
    }
    const auto table = sections.next("a filter");
    if (!table) return table.error();
    if (table->size() != shape->bytes()) {
      return bad("a filter needs " + std::to_string(shape->bytes()) + " bytes, its section has " +
                 std::to_string(table->size()));
    }
    if (auto fits = RibbonLayout::check(*shape, *table); !fits) return bad(fits.error().detail);
    layer.stages.push_back({static_cast<ExactCode>(code), *shape, *table});
  }
  const auto map_numbers = numbers.some();
  if (numbers.missing()) return bad("too few numbers");
  if (!map_numbers.empty()) {
    const auto table = sections.next("the map");
    if (!table) return table.error();
    const auto map = OneBit::over(map_numbers, *table);
    if (!map) return bad(map.error().detail);
    layer.map_numbers.assign(map_numbers.begin(), map_numbers.end());
    layer.map_table = *table;
    layer.map = *map;
  }
  if (auto sound = check_codes(layer); !sound) return std::move(sound).error();
  return layer;
}

// log2 of the binomial coefficient.
double log2_choose(double n, double k) {
  if (k <= 0 || k >= n) return 0;
  return (std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1)) / std::log(2.0);
}

}  // namespace

void ExactStage::query(std::span<const std::uint64_t> words, std::uint64_t* answers) const noexcept {
  query_batch<RibbonLayout>(shape, table.data(),
                            {.words = words.data(), .count = words.size(), .ahead = far_away(table.size())}, answers);
}

const ExactStage* ExactLayer::stage_of(ExactCode code) const noexcept {
  const auto at = std::lower_bound(stages.begin(), stages.end(), code,
                                   [](const ExactStage& stage, ExactCode wanted) { return stage.code < wanted; });
  return at == stages.end() || at->code != code ? nullptr : &*at;
}

ExactCode ExactLayer::code_of(std::uint64_t part) const noexcept {
  const std::uint64_t count = part_count();
  std::uint64_t low = 0;
  for (std::uint64_t left = count; left != 0;) {
    const std::uint64_t half = left / 2;
    if (load<std::uint64_t>(directory.data() + 8 * (low + half)) < part) {
      low += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  if (low == count || load<std::uint64_t>(directory.data() + 8 * low) != part) return rest;
  return static_cast<ExactCode>(directory[8 * count + low]);
}

// Filter, then map what passes.
void ExactLayer::query_part(ExactCode code, std::span<const std::uint64_t> words,
                            std::uint64_t* answers) const noexcept {
  constexpr std::size_t kWords = kExactColumn / kBatch;
  const std::size_t count = (words.size() + kBatch - 1) / kBatch;
  const std::uint64_t last =
      words.size() % kBatch == 0 ? ~std::uint64_t{0} : (std::uint64_t{1} << (words.size() % kBatch)) - 1;
  if (is_constant(code)) {
    std::fill_n(answers, count, code == kAllIn ? ~std::uint64_t{0} : 0);
    answers[count - 1] &= last;
    return;
  }
  if (columns_of(code) == 0) {
    if (map_numbers.empty()) {
      std::fill_n(answers, count, ~std::uint64_t{0});
    } else {
      map.find(words, answers);
    }
  } else {
    stage_of(code)->query(words, answers);
    if (!map_numbers.empty()) {
      std::array<std::uint64_t, kExactColumn> passed;
      std::array<std::uint16_t, kExactColumn> place;
      std::size_t found = 0;
      for (std::size_t word = 0; word < count; ++word) {
        for (std::uint64_t bits = answers[word]; bits != 0; bits &= bits - 1) {
          place[found] = static_cast<std::uint16_t>(word * kBatch + static_cast<unsigned>(std::countr_zero(bits)));
          passed[found] = words[place[found]];
          ++found;
        }
      }
      if (found != 0) {
        std::array<std::uint64_t, kWords> listed;
        map.find({passed.data(), found}, listed.data());
        std::fill_n(answers, count, 0);
        for (std::size_t i = 0; i < found; ++i) {
          answers[place[i] / kBatch] |= (listed[i / kBatch] >> (i % kBatch) & 1) << (place[i] % kBatch);
        }
      }
    }
  }
  if ((code & kInverted) != 0) {
    for (std::size_t word = 0; word < count; ++word) answers[word] = ~answers[word];
  }
  answers[count - 1] &= last;
}

void ExactLayer::query(const ExactKeys& keys, std::uint64_t* answers) const noexcept {
  const auto words = keys.words;
  const std::size_t count = (words.size() + kBatch - 1) / kBatch;
  std::array<std::uint64_t, kExactColumn / kBatch> own;
  if (directory.empty()) {
    query_part(rest, words, own.data());
    for (std::size_t i = 0; i < count; ++i) answers[i] ^= own[i];
    return;
  }
  // The keys of each code together.
  std::array<ExactCode, kExactColumn> codes;
  for (std::size_t i = 0; i < words.size(); ++i) codes[i] = keys.parts.empty() ? rest : code_of(keys.parts[i]);
  std::array<std::uint64_t, kExactColumn> same;
  std::array<std::uint16_t, kExactColumn> place;
  std::array<bool, 256> done{};
  for (std::size_t first = 0; first < words.size(); ++first) {
    const ExactCode code = codes[first];
    if (std::exchange(done[code], true)) continue;
    std::size_t found = 0;
    for (std::size_t i = first; i < words.size(); ++i) {
      if (codes[i] != code) continue;
      same[found] = words[i];
      place[found++] = static_cast<std::uint16_t>(i);
    }
    query_part(code, {same.data(), found}, own.data());
    for (std::size_t i = 0; i < found; ++i) {
      answers[place[i] / kBatch] ^= (own[i / kBatch] >> (i % kBatch) & 1) << (place[i] % kBatch);
    }
  }
}

std::uint64_t ExactLayer::bytes() const noexcept {
  std::uint64_t sum = directory.size() + map_table.size();
  for (const ExactStage& stage : stages) sum += stage.table.size();
  return sum;
}

Result<std::shared_ptr<const ExactTables>> ExactTables::over(std::span<const std::uint64_t> all,
                                                             std::span<const Bytes> all_sections) {
  Numbers numbers(all);
  Sections sections(all_sections);
  const std::uint64_t layers = numbers.next();
  if (numbers.missing() || layers == 0 || layers > ExactLayers::kMaxLayers)
    return bad(std::to_string(layers) + " layers");
  auto tables = std::make_shared<ExactLayers>();
  for (std::uint64_t i = 0; i < layers; ++i) {
    auto layer = read_layer(numbers, sections);
    if (!layer) return std::move(layer).error();
    tables->layers.push_back(*std::move(layer));
  }
  if (!numbers.empty() || !sections.empty()) return bad("more numbers or sections than its layers have");
  if (auto sound = tables->check(); !sound) return std::move(sound).error();
  return std::shared_ptr<const ExactTables>(std::move(tables));
}

Result<std::shared_ptr<const ExactTables>> ExactTables::stacked(std::shared_ptr<const ExactTables> below,
                                                                std::shared_ptr<const ExactTables> above) {
  auto both = std::make_shared<ExactLayers>();
  for (const auto* const tables : {&below, &above}) {
    const auto& layers = static_cast<const ExactLayers&>(**tables).layers;  // there are no others
    both->layers.insert(both->layers.end(), layers.begin(), layers.end());
  }
  both->below = {std::move(below), std::move(above)};
  if (auto sound = both->check(); !sound) return std::move(sound).error();
  return std::shared_ptr<const ExactTables>(std::move(both));
}

// A key has one part in all layers.
Result<void> ExactLayers::check() const {
  if (layers.empty() || layers.size() > kMaxLayers) return bad(std::to_string(layers.size()) + " layers");
  for (const ExactLayer& layer : layers) {
    if (layer.parts && layer.parts != parts()) return bad("its layers have parts by different fields");
  }
  return {};
}

ExactParts ExactLayers::parts() const noexcept {
  for (const ExactLayer& layer : layers) {
    if (layer.parts) return layer.parts;
  }
  return {};
}

void ExactLayers::query(const ExactKeys& keys, std::uint64_t* answers) const noexcept {
  for (std::size_t from = 0; from < keys.words.size(); from += kExactColumn) {
    const std::size_t count = std::min(kExactColumn, keys.words.size() - from);
    const ExactKeys some{.words = keys.words.subspan(from, count),
                         .parts = keys.parts.empty() ? keys.parts : keys.parts.subspan(from, count)};
    std::fill_n(answers, (count + kBatch - 1) / kBatch, 0);
    for (const ExactLayer& layer : layers) layer.query(some, answers);
    answers += count / kBatch;
  }
}

void ExactLayers::prefetch(std::uint64_t word) const noexcept {
  const ExactLayer& first = layers[0];
  if (const ExactStage* const stage = first.stage_of(first.rest)) {
    RibbonLayout::prefetch(stage->shape, stage->table.data(), word);
  }
}

std::uint64_t ExactLayers::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const ExactLayer& layer : layers) sum += layer.bytes();
  return sum;
}

ExactFigures ExactLayers::figures() const {
  const ExactLayer& first = layers[0];
  ExactFigures figures;
  figures.members = first.members;
  figures.universe = first.universe;
  figures.bytes = bytes();
  figures.layers = layers.size();
  figures.parts = first.part_count();
  figures.limit_bits = log2_choose(static_cast<double>(first.universe), static_cast<double>(first.members));
  figures.more.emplace_back("answers", "in or out, right for every key of the universe; meaningless for any other");
  figures.more.emplace_back("universe", std::to_string(first.universe));
  std::string columns;
  for (const ExactStage& stage : first.stages) {
    columns += (columns.empty() ? "" : ", ") + std::to_string(stage.shape.columns) +
               ((stage.code & kInverted) != 0 ? " inverted" : "");
  }
  figures.more.emplace_back("columns", columns.empty() ? "0" : columns);
  if (const ExactParts by = parts()) {
    figures.more.emplace_back("part field", std::to_string(by.field));
    figures.more.emplace_back("parts listed", std::to_string(first.part_count()));
  }
  if (layers.size() > 1) figures.more.emplace_back("layers", std::to_string(layers.size()));
  return figures;
}

std::vector<std::uint64_t> ExactLayers::numbers() const {
  std::vector<std::uint64_t> all = {layers.size()};
  const auto append = [&](const std::vector<std::uint64_t>& some) {
    all.push_back(some.size());
    all.insert(all.end(), some.begin(), some.end());
  };
  for (const ExactLayer& layer : layers) {
    all.insert(all.end(), {layer.members, layer.universe, layer.parts.field,
                           static_cast<std::uint64_t>(static_cast<unsigned char>(layer.parts.delimiter)), layer.rest,
                           layer.part_count(), layer.stages.size()});
    for (const ExactStage& stage : layer.stages) {
      all.push_back(stage.code);
      append(stage.shape.numbers());
    }
    append(layer.map_numbers);
  }
  return all;
}

std::vector<Bytes> ExactLayers::sections() const {
  std::vector<Bytes> all;
  for (const ExactLayer& layer : layers) {
    if (!layer.directory.empty()) all.push_back(layer.directory);
    for (const ExactStage& stage : layer.stages) all.push_back(stage.table);
    if (!layer.map_numbers.empty()) all.push_back(layer.map_table);
  }
  return all;
}

}  // namespace detail
}  // namespace perhaps
