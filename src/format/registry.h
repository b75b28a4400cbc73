// Every codec, sorted by name. To add a format, add a source file, a line here and an entry in registry.cc.
#pragma once
#include "perhaps/format/format.h"

namespace perhaps::format {

extern const Codec kCassandra;
extern const Codec kDataSketches;
extern const Codec kDcso;
extern const Codec kFuse16;
extern const Codec kFuse8;
extern const Codec kGoBloom;
extern const Codec kGuava;
extern const Codec kHadoop;
extern const Codec kLab;
extern const Codec kLevelDb;
extern const Codec kLevelDbFilterBlock;
extern const Codec kLevelDbTable;
extern const Codec kMiniLsm;
extern const Codec kMiniLsmTable;
extern const Codec kMmh3;
extern const Codec kNori;
extern const Codec kNoriTable;
extern const Codec kParquet;
extern const Codec kRedisBloomBf;
extern const Codec kRedisBloomCf;
extern const Codec kRocksDbFastLocal;
extern const Codec kRocksDbLegacy;
extern const Codec kRocksDbRibbon;
extern const Codec kRocksDbTable;
extern const Codec kSpark;
extern const Codec kXor16;
extern const Codec kXor8;

}  // namespace perhaps::format
