#include "perhaps/file/range_file.h"

#include "file/container_header.h"

namespace perhaps {
namespace {

Header header_of(const RangeView& filter, const Record& record) {
  Header header = Header::of(Hash(filter.seed()));
  header.kind = Kind::range;
  header.record = record;
  header.sections = {{.type = 0, .bytes = filter.bytes()}};
  return header;
}

}  // namespace

Result<void> save(const std::string& path, const RangeView& filter, const Record& record) {
  return write_container(path, header_of(filter, record));
}

Result<std::vector<std::byte>> file_bytes(const RangeView& filter, const Record& record) {
  const Header header = header_of(filter, record);
  const auto size = container_size(header);
  if (!size) return size.error();
  std::vector<std::byte> bytes(memory_size(*size));
  if (auto done = write_container(std::span(bytes), header); !done) return std::move(done).error();
  return bytes;
}

Result<RangeView> range_in(const Header& header) {
  const auto bad = [](Errc code, const std::string& fact) { return Error{code, "range: " + fact}; };
  if (header.kind != Kind::range) {
    return Error{Errc::mismatch, "a " + std::string(name_of(header.kind)) + " filter does not answer ranges"};
  }
  if (header.scheme != Scheme::xxh3_64) return bad(Errc::unsupported, "a keyed range filter");
  if (!header.params.empty()) {
    return bad(Errc::bad_parameter, "no parameters expected, not " + std::to_string(header.params.size()));
  }
  if (header.sections.size() != 1) {
    return bad(Errc::bad_parameter, "one section expected, not " + std::to_string(header.sections.size()));
  }
  if (header.sections[0].type != 0) return bad(Errc::unsupported, "unknown section type");
  auto view = RangeView::over(header.sections[0].bytes);
  if (view && view->seed() != header.seed) return bad(Errc::bad_parameter, "header and table have different seeds");
  return view;
}

}  // namespace perhaps
