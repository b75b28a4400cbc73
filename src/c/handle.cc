#include "c/handle.h"

#include <string>
#include <utility>

#include "c/status.h"

namespace perhaps {

void hold(perhaps_filter& handle, std::unique_ptr<AnyFilter> filter) {
  handle.filter = filter.get();
  handle.ours = own_filter_of(*filter);
  handle.owner = dynamic_cast<AnyOwner*>(filter.get());
  handle.changing = dynamic_cast<AnyMutable*>(filter.get());
  handle.own = std::move(filter);
}

std::unique_ptr<perhaps_filter> handle_of(std::unique_ptr<AnyFilter> filter) {
  auto handle = std::make_unique<perhaps_filter>();
  hold(*handle, std::move(filter));
  return handle;
}

Result<AnyMutable*> changing(perhaps_filter& filter) {
  if (filter.changing != nullptr) return filter.changing;
  // First: the rate of another system's filter, which is in its description, takes 2^18 lookups.
  if (filter.codec != nullptr) return refused(std::string(filter.codec->name) + ": read-only");
  const std::string family = filter.filter->describe().family;
  const auto kind = kind_named(family);
  const Family* const about = kind ? find_family(*kind) : nullptr;
  if (about != nullptr && about->inserts) return refused("read-only, as it was opened: copy it to change it");
  return refused((family == name_of(Kind::exact) ? "an " : "a ") + family + " filter cannot be changed: build another");
}

}  // namespace perhaps
