// A RocksDB database of `perhaps bench lsm`: each level is written by a compaction to that level, so that a policy is
// told the level.
#pragma once
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "lsm.h"

namespace perhaps::bench {

inline constexpr std::uint64_t kFileBytes = 16 << 20;

inline void check(const ::rocksdb::Status& status) {
  if (!status.ok()) throw std::runtime_error("rocksdb: " + status.ToString());
}

// Files that are not forced to the disk: a benchmark may lose its databases, and hundreds of syncs take as long as the
// disk is busy with others.
class UnsyncedFiles final : public ::rocksdb::FileSystemWrapper {
 public:
  UnsyncedFiles() : FileSystemWrapper(::rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "unsynced"; }

  ::rocksdb::IOStatus NewWritableFile(const std::string& name, const ::rocksdb::FileOptions& options,
                                      std::unique_ptr<::rocksdb::FSWritableFile>* result,
                                      ::rocksdb::IODebugContext* context) override {
    auto status = target()->NewWritableFile(name, options, result, context);
    if (status.ok()) *result = std::make_unique<File>(std::move(*result));
    return status;
  }
  ::rocksdb::IOStatus NewDirectory(const std::string& name, const ::rocksdb::IOOptions& options,
                                   std::unique_ptr<::rocksdb::FSDirectory>* result,
                                   ::rocksdb::IODebugContext* context) override {
    auto status = target()->NewDirectory(name, options, result, context);
    if (status.ok()) *result = std::make_unique<Directory>(std::move(*result));
    return status;
  }

 private:
  using Options = ::rocksdb::IOOptions;
  using Context = ::rocksdb::IODebugContext;
  struct File final : ::rocksdb::FSWritableFileOwnerWrapper {
    using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;
    ::rocksdb::IOStatus Sync(const Options&, Context*) override { return ::rocksdb::IOStatus::OK(); }
    ::rocksdb::IOStatus Fsync(const Options&, Context*) override { return ::rocksdb::IOStatus::OK(); }
  };
  struct Directory final : ::rocksdb::FSDirectoryWrapper {
    using FSDirectoryWrapper::FSDirectoryWrapper;
    ::rocksdb::IOStatus Fsync(const Options&, Context*) override { return ::rocksdb::IOStatus::OK(); }
    ::rocksdb::IOStatus FsyncWithDirOptions(const Options&, Context*, const ::rocksdb::DirFsyncOptions&) override {
      return ::rocksdb::IOStatus::OK();
    }
  };
};

inline ::rocksdb::Env* unsynced_env() {
  static const auto env = ::rocksdb::NewCompositeEnv(std::make_shared<UnsyncedFiles>());
  return env.get();
}

inline ::rocksdb::Options level_options(const LsmOptions& options) {
  ::rocksdb::Options open;
  open.create_if_missing = true;
  open.env = unsynced_env();
  open.disable_auto_compactions = true;
  open.compression = ::rocksdb::kNoCompression;
  open.write_buffer_size = 64 << 20;
  open.target_file_size_base = kFileBytes;
  open.num_levels = static_cast<int>(options.levels) + 1;
  open.level0_slowdown_writes_trigger = open.level0_stop_writes_trigger = 1 << 20;
  return open;
}

inline void fill_levels(const LsmOptions& options, ::rocksdb::DB& db) {
  ::rocksdb::WriteOptions write;
  write.disableWAL = true;
  std::uint64_t from = 0;
  for (std::size_t level = options.level_keys.size() - 1; level >= 1; --level) {
    for (std::uint64_t i = from; i < from + options.level_keys[level]; ++i)
      check(db.Put(write, lsm_key(i), lsm_value(options, i)));
    from += options.level_keys[level];
    check(db.Flush({}));
    std::vector<::rocksdb::LiveFileMetaData> files;
    db.GetLiveFilesMetaData(&files);
    std::vector<std::string> new_files;
    for (const auto& file : files) {
      if (file.level == 0) new_files.push_back(file.name);
    }
    ::rocksdb::CompactionOptions compaction;
    compaction.compression = ::rocksdb::kNoCompression;
    compaction.output_file_size_limit = kFileBytes;
    check(db.CompactFiles(compaction, new_files, static_cast<int>(level)));
  }
}

}  // namespace perhaps::bench
