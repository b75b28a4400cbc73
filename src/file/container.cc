// Reading our own file, and filling one in place. doc/container.md is the specification, container_header.h its header;
// container_write.cc writes whole filters.
#include "perhaps/file/container.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "any/family.h"
#include "any/other_kinds.h"
#include "any/scalable.h"
#include "file/container_header.h"
#include "file/temp_file.h"
#include "hash/checksum.h"
#include "perhaps/file/range_file.h"

namespace perhaps {
namespace {

std::string number(std::uint64_t n) { return std::to_string(n); }

// The parameters and sections of a flat filter make a shape whose table is there, whole.
template <class L>
Result<void> check_flat(const Header& header) {
  const auto shape = L::Shape::from(header.params);
  if (!shape) return shape.error();
  const std::string family(L::family);
  if (header.sections.size() != 1) {
    return Error{Errc::bad_parameter, family + ": one section expected, not " + number(header.sections.size())};
  }
  const auto& [type, bytes] = header.sections[0];
  if (type != 0) return Error{Errc::unsupported, family + ": unknown section type " + number(type)};
  if (bytes.size() != shape->bytes()) {
    return Error{Errc::bad_parameter, family + ": the shape needs " + number(shape->bytes()) +
                                          " bytes, the section has " + number(bytes.size())};
  }
  if constexpr (CheckedLayout<L>) return L::check(*shape, bytes);
  return {};
}

// What is checked does not depend on the hasher.
Result<void> check_scalable(const Header& header) {
  Result<void> result = Error{Errc::unsupported, "scalable: unknown kind of links"};
  for_each_link_layout([&]<class L>() {
    if (header.params.empty() || header.params[0] != static_cast<std::uint64_t>(L::kind)) return;
    const auto view = scalable_view<L>(header, EitherHash());
    if (!view) {
      result = view.error();
      return;
    }
    result = {};
    for (std::size_t i = 0; i < header.sections.size(); ++i) {
      if (header.sections[i].bytes.size() != view->links()[i].byte_size())
        result = Error{Errc::bad_parameter, "scalable: a section is larger than its link"};
    }
  });
  return result;
}

Result<void> check_kind(const Header& header) {
  if (header.kind == Kind::scalable) return check_scalable(header);
  if (header.kind == Kind::sets) {
    const auto index = SetIndexView::over(header, Hash());
    return index ? Result<void>() : index.error();
  }
  if (is_other(header.kind)) return check_other(header);
  Result<void> result = Error{Errc::unsupported, "unknown kind of filter " + number(std::uint32_t(header.kind))};
  for_each_layout([&]<class L>() {
    if (L::kind == header.kind) result = check_flat<L>(header);
  });
  return result;
}

Result<AnyHasher> hasher_for(const Header& header, const std::optional<KeyedHash>& secret) {
  switch (header.scheme) {
    case Scheme::xxh3_64:
      if (secret) return Error{Errc::bad_key, "a key was given, but the filter is not keyed"};
      return AnyHasher(Hash(header.seed));
    case Scheme::siphash_1_3:
      if (!secret) return Error{Errc::bad_key, "the filter is keyed, and no key was given"};
      if (secret->check_value() != header.seed) {
        return Error{Errc::bad_key, "the key is not the one the filter was built with"};
      }
      return AnyHasher(*secret);
  }
  return Error{Errc::unsupported, "unknown hash scheme " + number(std::uint32_t(header.scheme))};
}

}  // namespace

std::string_view name_of(Scheme scheme) noexcept {
  switch (scheme) {
    case Scheme::xxh3_64:
      return Hash::name;
    case Scheme::siphash_1_3:
      return KeyedHash::name;
  }
  return "unknown";
}

Result<File> File::open(const std::string& path, const OpenOptions& options) {
  const bool whole = options.verify || options.in_memory;
  auto mapping = Mapping::open(path, whole ? Mapping::Access::sequential : Mapping::Access::normal);
  if (!mapping) return std::move(mapping).error();
  if (options.in_memory) {
    const Bytes bytes = mapping->bytes();
    Memory memory(bytes.size());
    std::copy(bytes.begin(), bytes.end(), memory.data());
    auto file = over(memory.bytes(), options, path);
    if (file) file->memory_ = std::move(memory);
    return file;
  }
  auto file = over(mapping->bytes(), options, path);
  // Probes go anywhere: reading ahead of them would read the whole file for nothing, and push out what is needed.
  mapping->expect(Mapping::Access::random);
  if (file) file->mapping_ = *std::move(mapping);
  return file;
}

Result<File> File::over(Bytes bytes, const OpenOptions& options, std::string name) {
  const auto named = [&](const Error& error) { return Error{error.code, name + ": " + error.detail}; };
  auto parsed = parse_header(bytes, name);
  if (!parsed) return std::move(parsed).error();
  if (auto known = check_kind(parsed->header); !known) return named(known.error());
  auto hasher = hasher_for(parsed->header, options.secret);
  if (!hasher) return named(hasher.error());
  for (const SectionEntry& e : parsed->entries) {
    // The text about the filter is short, and is read anyway.
    if (options.verify || e.type == kAboutSection) {
      if (checksum_of(bytes.subspan(e.offset, padded(e.size))) != e.checksum) {
        return Error{Errc::bad_checksum, name + ": damaged: the " + number(e.size) + " bytes at " + number(e.offset) +
                                             " do not match their checksum"};
      }
    }
  }
  if (const SectionEntry* const last = parsed->entries.empty() ? nullptr : &parsed->entries.back();
      last != nullptr && last->type == kAboutSection) {
    auto about = parse_about(bytes.subspan(last->offset, last->size), name);
    if (!about) return std::move(about).error();
    parsed->header.record.about = *std::move(about);
  }
  File file;
  file.name_ = std::move(name);
  file.header_ = std::move(parsed->header);
  file.hasher_ = *hasher;
  file.verified_ = options.verify;
  return file;
}

// ------------------------------------------------------------------------------------------------------ NewContainer

struct NewContainer::State {
  TempFile temp;
  Header header;
  std::vector<SectionEntry> entries;
  std::vector<std::byte> start;
  std::vector<std::byte> about;
  Mapping mapping;
};

NewContainer::NewContainer(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
NewContainer::NewContainer(NewContainer&&) noexcept = default;
NewContainer& NewContainer::operator=(NewContainer&&) noexcept = default;
NewContainer::~NewContainer() = default;

Result<NewContainer> NewContainer::create(const std::string& path, Header header, std::uint64_t size) {
  auto about = about_text(header.record.about, path);
  if (!about) return std::move(about).error();
  std::vector<SectionEntry> entries = {{.type = 0, .offset = 0, .size = size, .checksum = 0}};
  if (!about->empty()) entries.push_back({.type = kAboutSection, .offset = 0, .size = about->size(), .checksum = 0});
  auto start = lay_out(path, header, entries);
  if (!start) return std::move(start).error();
  auto temp = TempFile::create(path);
  if (!temp) return std::move(temp).error();
  const std::uint64_t file_bytes = entries.back().offset + padded(entries.back().size);
  if (file_bytes > kMaxMemory) {
    return Error{Errc::io, path + ": " + number(file_bytes) + " bytes are more than this machine can address"};
  }
  // Not a sparse file: a full disk would then be a signal during some insert, instead of an error here.
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(temp->fd(), 0, static_cast<off_t>(file_bytes));
  if (error != 0) {
    errno = error;
    return temp->failed("cannot reserve " + number(file_bytes) + " bytes");
  }
  auto mapping = Mapping::of(temp->fd(), file_bytes, Mapping::Access::writable, path);
  if (!mapping) return std::move(mapping).error();
  std::unique_ptr<State> state(new State{.temp = *std::move(temp),
                                         .header = std::move(header),
                                         .entries = std::move(entries),
                                         .start = *std::move(start),
                                         .about = *std::move(about),
                                         .mapping = *std::move(mapping)});
  return NewContainer(std::move(state));
}

std::span<std::byte> NewContainer::section() noexcept {
  if (state_ == nullptr) return {};
  return state_->mapping.writable_bytes().subspan(state_->entries[0].offset, state_->entries[0].size);
}

Result<void> NewContainer::commit(const Record& record) {
  assert(state_ != nullptr);
  if (!record.about.empty() && record.about != state_->header.record.about) {
    return Error{Errc::bad_parameter, "the text about a filter is given when its file is created"};
  }
  // Whatever happens, this is the end of the file: a second commit could only write something else.
  const auto state = std::move(state_);
  if (!state->about.empty())
    std::memcpy(state->mapping.writable_bytes().data() + state->entries[1].offset, state->about.data(),
                state->about.size());
  state->mapping.expect(Mapping::Access::sequential);
  for (SectionEntry& entry : state->entries) {
    entry.checksum = checksum_of(state->mapping.bytes().subspan(entry.offset, padded(entry.size)));
  }
  state->header.record.keys = record.keys;
  state->header.record.capacity = record.capacity;
  seal(state->start, state->header, state->entries);
  if (auto done = state->temp.write(state->start, 0); !done) return done;
  return state->temp.publish();  // fsync includes the mapped pages
}

}  // namespace perhaps
