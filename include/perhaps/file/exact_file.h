// An exact set in our own file (container.h).
//
//   save("revoked.perhaps", set, {.keys = n, .capacity = n});
//   auto file = File::open("revoked.perhaps");
//   auto set = exact_in<Hash>(*file);                     // borrows from the file; or file->any()
#pragma once
#include <string>
#include <vector>

#include "perhaps/exact.h"
#include "perhaps/file/container.h"

namespace perhaps {

// Writes a set to a file, atomically, as write_container does. `record.keys` are its members.
template <Hasher H>
Result<void> save(const std::string& path, const ExactProbes<H>& set, const Record& record) {
  Header header = Header::of(set.hasher());
  header.kind = Kind::exact;
  header.params = set.numbers();
  header.record = record;
  for (const Bytes section : set.sections()) header.sections.push_back({.type = 0, .bytes = section});
  return write_container(path, header);
}

// The set in a file, which must outlive it.
template <Hasher H>
Result<BasicExactView<H>> exact_in(const File& file) {
  const AnyHasher any = file.hasher();
  const H* const hasher = std::get_if<H>(&any);
  if (file.header().kind != Kind::exact || hasher == nullptr) {
    return Error{Errc::mismatch, "the file holds a " + std::string(name_of(file.header().kind)) +
                                     " filter hashed with " + std::string(name_of(file.header().scheme)) +
                                     ", not an exact set with " + std::string(H::name)};
  }
  std::vector<Bytes> sections;
  for (const auto& section : file.header().sections) sections.push_back(section.bytes);
  return BasicExactView<H>::over(file.header().params, sections, *hasher);
}
template <Hasher H>
Result<BasicExactView<H>> exact_in(const File&&) = delete;  // The File must outlive the view.

}  // namespace perhaps
