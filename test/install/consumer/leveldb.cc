// LevelDB with our filters, as a user would write it.
#include <leveldb/slice.h>
#include <perhaps_leveldb.h>

#include <string>

int main() {
  const auto policy = perhaps::leveldb::new_filter_policy();
  const leveldb::Slice keys[] = {"one", "two", "three"};
  std::string filter;
  policy->CreateFilter(keys, 3, &filter);
  for (const leveldb::Slice& key : keys) {
    if (!policy->KeyMayMatch(key, filter)) return 1;
  }
  return 0;
}
