// perhaps-mpi build: a filter built by the ranks of an MPI program, from files that all of them can read.
//
//   reading        block i of the input, 1 MiB, is read by rank i mod R
//   line, block,   every rank sets the bits of its keys in a table of the full size, and the tables are joined by OR:
//   classic        the file is the one that a single machine writes. A key costs 10 bits on the wire, its digest 64
//   fuse, ribbon   need all keys of a filter in one place: digests go to the rank of their shard (file/shards.h), each
//                  rank builds one shard, and rank 0 writes the file of shards
//
// Before anything is read the ranks agree that all of them can: what is wrong with an argument is said once. A rank
// that fails later ends all of them (MPI_Abort). The file has no name until it is whole: nothing is left behind.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include "command.h"
#include "distinct.h"
#include "filter_args.h"
#include "filter_file.h"
#include "json.h"
#include "keys.h"
#include "options.h"
#include "parser.h"
#include "perhaps/file/shards.h"
#include "perhaps/perhaps.h"
#include "print.h"
#include "source.h"
#include "temp_folder.h"

namespace perhaps::cli {
namespace mpi {
namespace {

using Options = FilterArgs;

struct World {
  int rank = 0;
  int ranks = 1;
  World() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  }
  bool first() const noexcept { return rank == 0; }
  std::uint64_t sum(std::uint64_t value) const {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return value;
  }
  bool all(bool value) const {
    int whole = value;
    MPI_Allreduce(MPI_IN_PLACE, &whole, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return whole != 0;
  }
  // The lowest rank that says so, or the number of ranks.
  int lowest(bool value) const {
    int lowest = value ? rank : ranks;
    MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return lowest;
  }
  // The word of rank 0.
  bool agreed(bool value) const {
    int word = value;
    MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return word != 0;
  }
};

// The blocks of the input that are this rank's.
class Part {
 public:
  Part(const KeyOptions& options, const World& world) : options_(options), world_(world), parser_(options) {
    for (const std::string& path : options.files) {
      sources_.push_back(Source::open(path, options));
      if (!sources_.back()->mapped()) fail("{}: ranks share out files, not pipes or compressed files", path);
    }
  }

  std::uint64_t count() {
    std::uint64_t count = 0;
    if (options_.missing == Missing::skip && !options_.fields.empty()) {  // only the parser knows which have the field
      for_each([&](const Batch& batch) { count += batch.keys.size(); });
    } else {
      blocks([&](Source&, Bytes block) { count += count_records(options_.as, block); });
    }
    return count;
  }
  template <class Use>
  void for_each(Use use) {
    blocks([&](Source& source, Bytes block) {
      Batch batch;
      while (parser_.next(source, block, batch)) use(batch);
    });
  }

 private:
  template <class Use>
  void blocks(Use use) {
    std::uint64_t number = 0;
    for (const auto& source : sources_) {
      source->rewind();
      std::uint64_t stored = 0;
      for (Bytes block = source->next(stored); !block.empty(); block = source->next(stored)) {
        if (number++ % static_cast<std::uint64_t>(world_.ranks) == static_cast<std::uint64_t>(world_.rank))
          use(*source, block);
      }
    }
  }

  const KeyOptions& options_;
  const World& world_;
  Parser parser_;
  std::vector<std::unique_ptr<Source>> sources_;
};

struct Outcome {
  std::uint64_t keys = 0;
  std::uint64_t shards = 0;
};

// All ranks agree whether they can go on. Of those that cannot only the lowest says why: usually all have the same
// reason. The others end without a word.
struct Silent {};
bool agreed = false;
bool refused = false;  // by some rank

void agree(bool failed) {
  const World world;
  const int first = world.lowest(failed);
  agreed = true;
  refused = first != world.ranks;
  if (refused && first != world.rank) throw Silent();
}

// What fails on all ranks, since they have the same numbers.
template <class Check>
void check_together(const World& world, Check check) {
  try {
    check();
  } catch (const Failure&) {
    refused = true;
    if (!world.first()) throw Silent();
    throw;
  }
}

// Before a file is replaced.
void check_some(const World& world, std::uint64_t keys, const KeyOptions& options) {
  check_together(world, [&] {
    if (keys == 0) fail("no keys came from {}: nothing was written", fmt::join(options.files, ", "));
  });
}

// Joins the tables of all ranks in that of rank 0: 64 bits at a time, and the bytes that are left. In pieces that the
// buffers of MPI can hold in the cache: with 64 MiB, half of the time of the system went into fresh pages for them.
void reduce(std::span<std::byte> table, const World& world) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  while (!table.empty()) {
    const bool words = table.size() >= 8;
    const auto piece = table.first(words ? std::min(kPiece, table.size() / 8 * 8) : table.size());
    MPI_Reduce(world.first() ? MPI_IN_PLACE : piece.data(), piece.data(),
               static_cast<int>(words ? piece.size() / 8 : piece.size()), words ? MPI_UINT64_T : MPI_UINT8_T, MPI_BOR,
               0, MPI_COMM_WORLD);
    table = table.subspan(piece.size());
  }
}

template <class L, class H>
Outcome build_bits(const Options& options, const World& world, Part& part, const H& hasher) {
  std::uint64_t room = options.keys_expected != 0 ? options.keys_expected : world.sum(part.count());
  const std::uint64_t records = room;
  for (bool again = false;; again = true) {
    const auto shape = L::Shape::for_keys(options.sizing.request(room));
    Memory table(shape.bytes());
    const std::span<std::byte> bytes(table.data(), table.size());
    auto span = take(Flat<L, H>::Span::over(bytes, shape, hasher));
    std::uint64_t keys = 0;
    std::array<std::uint64_t, Parser::kColumn> values;
    std::array<Digest<H>, Parser::kColumn> digests;
    part.for_each([&](const Batch& batch) {
      digest_keys(hasher, options.keys.as, batch.keys, values);
      for (std::size_t i = 0; i < batch.keys.size(); ++i) digests[i] = Digest<H>::made_by(hasher, values[i]);
      span.insert(std::span<const Digest<H>>(digests.data(), batch.keys.size()));
      keys += batch.keys.size();
    });
    keys = world.sum(keys);
    check_some(world, keys, options.keys);
    reduce(bytes, world);
    // As `perhaps build` does for repeated keys.
    if (!again && options.keys_expected == 0) {
      const Condition now = world.first() ? condition_of(shape, bytes) : Condition{};
      if (world.agreed(world.first() && may_repeat(records, now.fill < kTellingFill ? now.keys : 0))) {
        Distinct seen;
        part.for_each([&](const Batch& batch) {
          digest_keys(hasher, options.keys.as, batch.keys, values);
          for (std::size_t i = 0; i < batch.keys.size(); ++i) seen.add(values[i]);
        });
        MPI_Allreduce(MPI_IN_PLACE, seen.registers().data(), static_cast<int>(seen.registers().size()), MPI_UINT8_T,
                      MPI_MAX, MPI_COMM_WORLD);
        room = room_for(records, seen);
        if (room != records) continue;
      }
    }
    Outcome result{.keys = keys};
    if (!world.first()) return result;
    Header header = Header::of<L>(shape, hasher);
    header.record = {.keys = keys, .capacity = room, .about = about_new(options.keys, options.note)};
    header.sections = {{.type = 0, .bytes = bytes}};
    take(write_container(options.output, header));
    return result;
  }
}

// Digests on their way to the ranks that build their shards.
class Exchange {
 public:
  Exchange(const World& world, AnyLane& lane)
      : world_(world), lane_(lane), out_(static_cast<std::size_t>(world.ranks)) {}

  void add(std::uint64_t digest, std::size_t to) {
    out_[to].push_back(digest);
    if (++held_ == kHeld) round(false);
  }
  // Rounds in which this rank has nothing to send, until all have sent everything.
  void finish() {
    while (!round(true)) {
    }
  }

 private:
  static constexpr std::size_t kHeld = std::size_t{1} << 20;  // 8 MiB

  bool round(bool last) {
    const std::size_t ranks = out_.size();
    std::vector<int> sizes(ranks), starts(ranks), sizes_in(ranks), starts_in(ranks);
    sending_.clear();
    for (std::size_t i = 0; i < ranks; ++i) {
      starts[i] = static_cast<int>(sending_.size());
      sizes[i] = static_cast<int>(out_[i].size());
      sending_.insert(sending_.end(), out_[i].begin(), out_[i].end());
      out_[i].clear();
    }
    held_ = 0;
    MPI_Alltoall(sizes.data(), 1, MPI_INT, sizes_in.data(), 1, MPI_INT, MPI_COMM_WORLD);
    int total = 0;
    for (std::size_t i = 0; i < ranks; ++i) starts_in[i] = std::exchange(total, total + sizes_in[i]);
    received_.resize(static_cast<std::size_t>(total));
    MPI_Alltoallv(sending_.data(), sizes.data(), starts.data(), MPI_UINT64_T, received_.data(), sizes_in.data(),
                  starts_in.data(), MPI_UINT64_T, MPI_COMM_WORLD);
    // A lane that takes no more is explained when the filter is finished.
    full_ = full_ || !lane_.insert_digests(received_);
    return world_.all(last);
  }

  const World& world_;
  AnyLane& lane_;
  std::vector<std::vector<std::uint64_t>> out_;
  std::vector<std::uint64_t> sending_, received_;
  std::size_t held_ = 0;
  bool full_ = false;
};

// A filter as the bytes of its file.
class Saved {
 public:
  Saved(const AnyOwner& filter, const Record& record) {
    const TempFolder folder;  // the bytes stay for as long as they are mapped
    const std::string path = folder.path() / "shard";
    take(filter.save(path, record));
    mapped_ = take(Mapping::open(path));
  }
  Bytes bytes() const noexcept { return mapped_.bytes(); }

 private:
  Mapping mapped_;
};

constexpr std::size_t kMessage = std::size_t{1} << 24;

void send(Bytes bytes) {
  const std::uint64_t size = bytes.size();
  MPI_Send(&size, 1, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD);
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(kMessage, bytes.size())))
    MPI_Send(bytes.data(), static_cast<int>(std::min(kMessage, bytes.size())), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

void receive(int from, ShardsWriter& out) {
  std::uint64_t size = 0;
  MPI_Recv(&size, 1, MPI_UINT64_T, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  std::vector<std::byte> piece(std::min<std::uint64_t>(size, kMessage));
  for (; size != 0; size -= piece.size()) {
    piece.resize(std::min<std::uint64_t>(size, kMessage));
    MPI_Recv(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    take(out.append(piece));
  }
}

Outcome build_shards(const Options& options, const World& world, Part& part, const AnyHasher& hasher) {
  const auto ranks = static_cast<std::uint64_t>(world.ranks);
  const std::uint64_t least = ranks * smallest_bytes(options.about->kind);
  check_together(world, [&] {
    if (options.sizing.max_bytes != 0 && options.sizing.max_bytes < least)
      fail("--max-bytes {}: {} shards have at least {} bytes", options.sizing.max_bytes, ranks, least);
  });
  AnyRequest request = options.sizing.any_request(0);
  request.max_bytes /= ranks;
  const auto builder = take(make_builder(options.about->kind, request, hasher));
  std::uint64_t keys = 0;
  {
    const auto lanes = builder->lanes(1);
    Exchange exchange(world, *lanes[0]);
    std::array<std::uint64_t, Parser::kColumn> digests;
    part.for_each([&](const Batch& batch) {
      hash_many(hasher, batch.keys, digests);  // of a number, its bytes: so it is looked up in a file of shards
      for (std::size_t i = 0; i < batch.keys.size(); ++i)
        exchange.add(digests[i], static_cast<std::size_t>(shard_of(batch.keys[i], ranks)));
      keys += batch.keys.size();
    });
    exchange.finish();
  }
  keys = world.sum(keys);
  check_some(world, keys, options.keys);
  auto built = builder->finish();
  agree(!built);
  if (!built && built.error().code == Errc::full && options.sizing.max_bytes != 0)
    fail("--max-bytes {}: shard {} of {}: {}", options.sizing.max_bytes, world.rank, ranks, built.error().detail);
  const auto filter = take(std::move(built));
  Record record{.keys = 0, .capacity = 0, .about = about_new(options.keys, options.note)};
  record.keys = record.capacity = filter->describe().keys.value_or(0);
  const std::uint64_t bytes = world.sum(filter->byte_size());
  const std::uint64_t distinct = world.sum(record.keys);
  check_together(world, [&] { check_kept(options.sizing, *options.about, bytes, distinct); });
  const Saved saved(*filter, record);
  Outcome result{.keys = keys, .shards = ranks};
  if (!world.first()) {
    send(saved.bytes());
    return result;
  }
  ShardsWriter out = take(ShardsWriter::create(options.output, ranks, ranks));
  take(out.begin(0));
  take(out.append(saved.bytes()));
  for (int rank = 1; rank < world.ranks; ++rank) {
    take(out.begin(static_cast<std::uint64_t>(rank)));
    receive(rank, out);
  }
  take(out.commit());
  return result;
}

Outcome build(const Options& options, const World& world, Part& part, const AnyHasher& any) {
  if (!options.about->sets_bits) return build_shards(options, world, part, any);
  std::optional<Outcome> result;
  const auto build_if = [&]<class L>() {
    if constexpr (BitLayout<L>) {
      if (L::kind != options.about->kind) return;
      std::visit([&]<class H>(const H& hasher) { result = build_bits<L, H>(options, world, part, hasher); }, any);
    }
  };
#define PERHAPS_FAMILY(name, number, Type, summary) build_if.template operator()<Type>();
  PERHAPS_FAMILIES(PERHAPS_FAMILY)
#undef PERHAPS_FAMILY
  return *result;
}

bool takes(const Family& family) { return family.sets_bits || !family.inserts; }

int run(Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  const World world;
  options.about = find_family(*kind_named(options.family));
  check_output(options.output);
  check_room(options.sizing, options.about->kind);
  check_key_format(options.keys);
  if (options.keys.files.empty())
    fail("no files of keys are named, and ranks cannot share out standard input (see perhaps mpi --help)");
  AnyHasher hasher = Hash();
  if (const auto secret = options.keyed.read()) hasher = *secret;
  if (!options.about->sets_bits && !options.keyed.path.empty())
    fail("--keyed: a file of shards is hashed without a secret; {} filters can be keyed",
         families_text([](const Family& f) { return f.sets_bits; }));
  Part part(options.keys, world);
  agree(false);
  const Outcome result = build(options, world, part, hasher);
  if (!world.first()) return kYes;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const std::uint64_t bytes = std::filesystem::file_size(options.output);
  if (options.json) {
    Json json;
    json.add("file", options.output).add("family", options.family).add("keys", result.keys);
    json.add("ranks", static_cast<std::uint64_t>(world.ranks));
    json.add("shards", result.shards == 0 ? std::nullopt : std::optional(result.shards));
    Out().write(json.add("bytes", bytes).add("seconds", seconds.count()).text() + "\n");
  } else {
    Out().write(fmt::format(
        "{}: {} keys in a {} filter{}, {} bytes, by {} rank{} in {}\n", options.output, grouped(result.keys),
        options.family,
        result.shards == 0 ? "" : fmt::format(" of {} shard{}", result.shards, result.shards == 1 ? "" : "s"),
        grouped(bytes), world.ranks, world.ranks == 1 ? "" : "s", seconds_text(seconds.count())));
  }
  return kYes;
}

Command::Run mpi_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("-o,--output", options->output, "The file to write")->type_name("FILE")->required();
  add_words(app, "--filter", options->family, family_names(&takes), "The family; default: line");
  declare_sizing(app, options->sizing);
  add_count(app, "--keys-expected", options->keys_expected, "N", "Make room for N keys, and do not count them first");
  declare_keyed(app, options->keyed);
  declare_note(app, options->note);
  declare_json(app, options->json);
  declare_record_files(app, options->keys);
  declare_key_format(app, options->keys);
  return [options] { return run(*options); };
}

constexpr std::string_view kExamples[] = {
    "mpirun -n 64 perhaps-mpi build -o seen.perhaps keys.txt",
    "mpirun -n 64 perhaps-mpi build --filter ribbon -o seen.shards part.0 part.1",
};
constexpr JsonField kFields[] = {
    {"file", "string", ""},
    {"family", "string", ""},
    {"keys", "integer", "records that were read"},
    {"ranks", "integer", ""},
    {"shards", "integer or null", "in the file; null if it is one filter"},
    {"bytes", "integer", "of the file"},
    {"seconds", "number", ""},
};
constexpr JsonShape kJson[] = {{"", JsonShape::object, kFields}};
constexpr Command kCommands[] = {
    {"mpi", "build a filter on many machines, under mpirun",
     "Run as mpirun perhaps-mpi build. Every rank reads its part of the files, which all of them must be able to open. "
     "Line, block and classic filters come out as the file that `perhaps build` writes of the same keys; fuse and "
     "ribbon filters as a file of shards, one for each rank, which is queried as one filter. If a rank fails, all of "
     "them end, and no file is written.",
     kExamples, &mpi_command, kJson},
};

int run_build(int argc, char** argv) {
  // `perhaps-mpi build ..`
  const bool named = argc > 1 && std::string_view(argv[1]) == "build";
  return run_command(kCommands[0], argc - (named ? 1 : 0), argv + (named ? 1 : 0));
}

int run_rank(int argc, char** argv) {
  try {
    try {
      return run_build(argc, argv);
    } catch (const Failure&) {
      if (!agreed) agree(true);
      throw;
    }
  } catch (const Silent&) {
    return kError;
  }
}

}  // namespace
}  // namespace mpi

std::span<const Command> commands() noexcept { return mpi::kCommands; }
const Command* find_command(std::string_view) noexcept { return mpi::kCommands; }
std::vector<std::string> other_commands() { return {}; }

}  // namespace perhaps::cli

int main(int argc, char** argv) {
  const std::string_view last = argv[argc - 1];
  if (last == "--help" || last == "--describe")  // needs no other rank
    return perhaps::cli::run_program(perhaps::cli::mpi::run_build, argc, argv);
  MPI_Init(&argc, &argv);
  const int code = perhaps::cli::run_program(perhaps::cli::mpi::run_rank, argc, argv);
  if (perhaps::cli::mpi::refused) {
    MPI_Barrier(MPI_COMM_WORLD);  // mpirun ends the others as soon as one has ended, and one of them says why
  } else if (code != 0) {
    MPI_Abort(MPI_COMM_WORLD, code);  // the other ranks wait for this one
  }
  MPI_Finalize();
  return code;
}
