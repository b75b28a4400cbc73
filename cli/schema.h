// The fields of what each command prints with --json: names and types that programs rely on (doc/compatibility.md). The
// man page lists them from here, and contract_test.py compares what the commands print.
#pragma once
#include "command.h"

namespace perhaps::cli {

using Fields = const JsonField[];
using Shapes = const JsonShape[];

inline constexpr Fields kBuildFields = {
    {"file", "string", "the filter that was written"},
    {"family", "string", ""},
    {"hash", "string", ""},
    {"keys", "integer", "records that were read"},
    {"keys_distinct", "number", "estimated"},
    {"bits", "integer", ""},
    {"bytes", "integer", "of the table"},
    {"probes", "integer", "0 if the family has none"},
    {"bits_per_key", "number or null", ""},
    {"fill", "number", "share of the bits or slots in use"},
    {"fpr", "number", "rate of false positives now"},
    {"capacity", "integer", "keys that there is room for"},
    {"fpr_at_capacity", "number", ""},
    {"threads", "integer", ""},
    {"seconds", "number", ""},
    {"keys_per_second", "number", ""},
    {"range_size", "integer?", "of a range filter"},
    {"range_fpr", "number?", "of empty ranges of that size, at most"},
};
inline constexpr Fields kBuildFormatFields = {
    {"file", "string", ""},    {"format", "string", "as in perhaps formats"},
    {"family", "string", ""},  {"hash", "string", ""},
    {"keys", "integer", ""},   {"keys_distinct", "number", "estimated"},
    {"bits", "integer", ""},   {"bytes", "integer", "of the file"},
    {"probes", "integer", ""}, {"bits_per_key", "number or null", ""},
    {"fill", "number", ""},    {"fpr", "number", ""},
    {"seconds", "number", ""}, {"keys_per_second", "number", ""},
};
inline constexpr Shapes kJsonBuild = {{"", JsonShape::object, kBuildFields},
                                      {"--format", JsonShape::object, kBuildFormatFields}};

inline constexpr Fields kQueryFields = {
    {"key", "string", "with U+FFFD for bytes that are not UTF-8"},
    {"answer", "string", "perhaps or no"},
    {"file", "string", "where the record is, or -e"},
    {"line", "integer", "the number of the record in the file, from 1; the header of a CSV file is not counted"},
};
inline constexpr Fields kQueryCountFields = {
    {"file", "string", ""},
    {"keys", "integer", "that were queried"},
    {"selected", "integer", ""},
    {"inverted", "boolean", "-v"},
};
inline constexpr Fields kQueryRangeFields = {
    {"range", "string", "as it was given"},
    {"answer", "string", "perhaps or no"},
    {"file", "string", "where the range is, or --range"},
    {"line", "integer", "its number in the file, from 1; 0 for --range"},
};
inline constexpr Shapes kJsonQuery = {{"", JsonShape::lines, kQueryFields},
                                      {"-c", JsonShape::array, kQueryCountFields},
                                      {"--range", JsonShape::lines, kQueryRangeFields}};

inline constexpr Fields kAddFields = {
    {"file", "string", ""},
    {"given", "integer", ""},
    {"added", "integer", "those that were not there yet"},
    {"present", "integer", "those that were perhaps there"},
    {"keys", "integer", "added so far; a key added twice counts twice"},
    {"keys_distinct", "number", "estimated"},
    {"fill", "number", ""},
    {"fpr", "number", ""},
    {"grown", "boolean", "the filter made room"},
};
inline constexpr Shapes kJsonAdd = {{"", JsonShape::object, kAddFields}};

inline constexpr Fields kRemoveFields = {
    {"file", "string", ""},
    {"given", "integer", ""},
    {"removed", "integer", ""},
    {"absent", "integer", "were not there"},
    {"kept", "integer", "have a saturated counter"},
    {"lost", "number", "other keys that were lost with absent ones, expected"},
    {"keys", "integer", ""},
    {"fill", "number", ""},
    {"fpr", "number", ""},
};
inline constexpr Shapes kJsonRemove = {{"", JsonShape::object, kRemoveFields}};

inline constexpr Fields kInfoFields = {
    {"file", "string", ""},
    {"format", "string", "perhaps, shards, or as in perhaps formats"},
    {"family", "string", ""},
    {"hash", "string", ""},
    {"keys", "integer or null", "null if the file does not say"},
    {"keys_distinct", "number", "estimated"},
    {"capacity", "integer or null", ""},
    {"bits", "integer", ""},
    {"bytes", "integer", "of the table"},
    {"bits_per_key", "number or null", ""},
    {"probes", "integer", ""},
    {"fill", "number", ""},
    {"fpr", "number", ""},
    {"fpr_at_capacity", "number or null", ""},
    {"wrong_remove", "number?", "probability that removing an absent key removes another"},
    {"needs_rebuild", "boolean?", "where keys can be removed"},
    {"more", "strings", "what only this family or format has"},
    {"checksum", "string?", "ok, or not checked; of our own files"},
    {"about", "strings?", "recipe, note, time and tool; of our own files"},
    {"system", "string?", "of another system's file"},
    {"entries", "array", "every filter in the file: name, offset, size, format, and the figures above"},
    {"notes", "array", "strings"},
};
inline constexpr Shapes kJsonInfo = {{"", JsonShape::array, kInfoFields}};

inline constexpr Fields kExplainFields = {
    {"key", "string", ""},
    {"family", "string", ""},
    {"hash", "string", ""},
    {"digest", "string or null", "hexadecimal; null for other systems"},
    {"word", "string or null", "what the positions are made of: the digest, multiplied"},
    {"parts[].name", "string", "a link of a chain, or a filter inside a file"},
    {"parts[].steps", "strings", "from the digest to the place"},
    {"parts[].rule", "string", "all or any of the checks must hold; none: not shown"},
    {"parts[].checks[].what", "string", "bit, counter, slot, stash or column"},
    {"parts[].checks[].at", "integer", "its first bit in the table"},
    {"parts[].checks[].bits", "integer", "its width"},
    {"parts[].checks[].wanted", "integer", "of a stashed digest a hexadecimal string"},
    {"parts[].checks[].found", "integer", "likewise"},
    {"parts[].checks[].holds", "boolean", ""},
    {"parts[].checks[].content", "string?", "of a column: its 64 bits"},
    {"parts[].perhaps", "boolean", ""},
    {"answer", "string", "perhaps or no"},
};
inline constexpr Shapes kJsonExplain = {{"", JsonShape::lines, kExplainFields}};

inline constexpr Fields kConvertFields = {
    {"file", "string", ""},
    {"from", "string", "format"},
    {"to", "string", "format"},
    {"bytes", "integer", ""},
    {"changed", "string", "what is written in another way"},
};
inline constexpr Shapes kJsonConvert = {{"", JsonShape::object, kConvertFields}};

inline constexpr Fields kFormatsFields = {
    {"name", "string", ""},
    {"summary", "string", ""},
    {"writes", "boolean", "build --format"},
    {"converts", "boolean", "convert --to"},
    {"params[].name", "string", "for --set"},
    {"params[].summary", "string", ""},
    {"params[].values", "string", ""},
    {"params[].default", "string", ""},
    {"params[].option", "string or null", "the option of build that means the same"},
};
inline constexpr Shapes kJsonFormats = {{"", JsonShape::array, kFormatsFields}};

inline constexpr Fields kMergeFields = {
    {"file", "string", ""},
    {"filters", "integer", "that were merged"},
    {"keys", "integer", ""},
    {"keys_distinct", "number", "estimated"},
    {"keys_distinct_most", "number?", "with --intersect"},
    {"bytes", "integer", ""},
    {"fill", "number", ""},
    {"fpr", "number", ""},
};
inline constexpr Fields kMergeShardsFields = {
    {"file", "string", ""},
    {"filters", "integer", "files that were merged"},
    {"shards", "integer", "of the partition"},
    {"shards_here", "integer", "in the file"},
};
inline constexpr Shapes kJsonMerge = {{"", JsonShape::object, kMergeFields},
                                      {"files of shards", JsonShape::object, kMergeShardsFields}};

inline constexpr Fields kFoldFields = {
    {"file", "string", ""}, {"keys", "integer", ""}, {"bytes", "integer", ""},
    {"fill", "number", ""}, {"fpr", "number", ""},
};
inline constexpr Shapes kJsonFold = {{"", JsonShape::object, kFoldFields}};

inline constexpr Fields kSplitFields = {
    {"file", "string", ""},     {"shard", "integer", "from 0"},      {"shards", "integer", ""},
    {"records", "integer", ""}, {"bytes", "integer", "of the file"},
};
inline constexpr Shapes kJsonSplit = {{"", JsonShape::array, kSplitFields}};

inline constexpr Fields kDedupFields = {
    {"lines", "integer", "read"},
    {"out", "integer", "written"},
    {"dropped", "integer", ""},
    {"expected_wrong", "number", "lines that were new and are among the dropped ones"},
    {"fpr", "number", "share of the new lines that was dropped, expected"},
    {"fpr_wanted", "number", "--fpr"},
    {"remembers", "string", "everything, the window, or the file of --seen"},
    {"bytes", "integer", "of memory"},
    {"seconds", "number", ""},
};
inline constexpr Fields kDedupCorpusFields = {
    {"lines", "integer", "documents read"},
    {"out", "integer", "written"},
    {"dropped", "integer", ""},
    {"fpr", "number", "of an n-gram at the end"},
    {"fpr_wanted", "number", "--fpr"},
    {"ngrams", "number", "distinct ones, estimated"},
    {"bytes", "integer", "of memory"},
    {"seconds", "number", ""},
};
inline constexpr Shapes kJsonDedup = {{"", JsonShape::object, kDedupFields},
                                      {"--ngrams", JsonShape::object, kDedupCorpusFields}};

inline constexpr Fields kVerifyFields = {
    {"keys", "integer", "that must be there"},
    {"false_negatives", "integer", "of them, answered no"},
    {"absent", "integer", "keys that are not there"},
    {"false_positives", "integer", "of them, answered perhaps"},
    {"fpr", "number", "measured"},
    {"fpr_low", "number", "interval of 5 sigma"},
    {"fpr_high", "number", ""},
    {"fpr_model", "number", "predicted"},
    {"model_agrees", "boolean", "it lies in the interval; of a range filter, no rate is above its bound"},
    {"range_size", "integer?", "of a range filter"},
    {"ranges", "integer?", "empty ones of that size"},
    {"ranges_perhaps", "integer?", "of them, answered perhaps"},
    {"range_fpr_most", "number?", "by the theorem"},
};
inline constexpr Fields kVerifyCheckFields = {
    {"certificate", "string", "the file"},    {"same", "boolean", ""},
    {"differences[].name", "string", ""},     {"differences[].recorded", "string", "in the certificate"},
    {"differences[].found", "string", "now"},
};
inline constexpr Fields kVerifyExactFields = {
    {"members", "integer", "distinct"},
    {"members_read", "integer", "records"},
    {"universe_read", "integer", "records"},
    {"others", "integer", "of the universe that are no members"},
    {"false_out", "integer", "members that are answered out"},
    {"false_in", "integer", "others that are answered in"},
    {"exact", "boolean", "no answer is wrong"},
};
inline constexpr Shapes kJsonVerify = {{"", JsonShape::object, kVerifyFields},
                                       {"--universe", JsonShape::object, kVerifyExactFields},
                                       {"--check", JsonShape::object, kVerifyCheckFields}};

inline constexpr Fields kSizeFields = {
    {"family", "string", ""},
    {"keys", "integer", ""},
    {"bits", "integer", ""},
    {"bytes", "integer", ""},
    {"bits_per_key", "number", ""},
    {"probes", "integer", ""},
    {"fpr", "number", ""},
    {"bits_per_key_limit", "number", "the least that any filter of this rate needs"},
    {"above_limit", "number", "share"},
    {"summary", "string", ""},
    {"kind", "integer", "the number of the family in files"},
    {"add", "boolean", ""},
    {"remove", "boolean", ""},
    {"merge", "boolean", ""},
    {"grow", "boolean", ""},
};
inline constexpr Shapes kJsonSize = {{"", JsonShape::array, kSizeFields}};

inline constexpr Fields kAdviseFields = {
    {"keys", "integer", ""},
    {"keys_distinct", "number", ""},
    {"keys_measured", "integer", "in the sample"},
    {"queries", "integer", "of --queries"},
    {"queries_absent", "number or null", "share"},
    {"asked", "integer", "keys that were timed"},
    {"asked_are_queries", "boolean", "and not made up"},
    {"absent", "integer", ""},
    {"absent_are_queries", "boolean", ""},
    {"saves_ns", "number", ""},
    {"bit_price_ns", "number", ""},
    {"fpr_chosen", "number?", "with prices, as are the next three"},
    {"price_without", "number?", "of a month without a filter"},
    {"price_memory", "number?", "of a month of the best"},
    {"price_wrong", "number?", ""},
    {"gain_ns", "number?", "of the best; missing if there is none"},
    {"ranked[].family", "string", "the best first"},
    {"ranked[].arity", "integer?", "of fuse"},
    {"ranked[].add", "boolean", ""},
    {"ranked[].delete", "boolean", ""},
    {"ranked[].merge", "boolean", ""},
    {"ranked[].grow", "boolean", ""},
    {"ranked[].summary", "string", ""},
    {"ranked[].bytes", "integer", ""},
    {"ranked[].bits_per_key", "number", ""},
    {"ranked[].fpr", "number", ""},
    {"ranked[].fpr_measured", "number", ""},
    {"ranked[].fpr_model", "number", ""},
    {"ranked[].fpr_is_measured", "boolean", "or the model's"},
    {"ranked[].single_ns", "number", ""},
    {"ranked[].batch_ns", "number", ""},
    {"ranked[].build_seconds", "number", ""},
    {"ranked[].build_bytes", "integer", ""},
    {"ranked[].cost_ns", "number", "of a lookup"},
    {"ranked[].total_ns", "number", "with the memory"},
    {"not_ranked[].family", "string", ""},
    {"not_ranked[].arity", "integer?", ""},
    {"not_ranked[].add", "boolean", ""},
    {"not_ranked[].delete", "boolean", ""},
    {"not_ranked[].merge", "boolean", ""},
    {"not_ranked[].grow", "boolean", ""},
    {"not_ranked[].summary", "string", ""},
    {"not_ranked[].reason", "string", "why it cannot do it"},
    {"why", "string", ""},
    {"command", "string or null", "to run"},
};
inline constexpr Shapes kJsonAdvise = {{"", JsonShape::object, kAdviseFields}};

inline constexpr Fields kMapGetFields = {
    {"key", "string", ""},
    {"found", "boolean", "false: certainly not in the map"},
    {"value", "integer or null", "null if the key was not found"},
    {"text", "string?", "the word that the value stands for, with --text"},
};
inline constexpr Fields kMapBuildFields = {
    {"file", "string", ""},
    {"family", "string", "map or coded"},
    {"hash", "string", ""},
    {"keys", "integer", "records read"},
    {"bytes", "integer", ""},
    {"bits_per_key", "number or null", ""},
    {"value_bits", "integer", ""},
    {"check_bits", "integer", ""},
    {"texts", "integer", "different words, with --text"},
};
inline constexpr Shapes kJsonMap = {{"get", JsonShape::lines, kMapGetFields},
                                    {"build", JsonShape::object, kMapBuildFields}};

inline constexpr Fields kRouteFields = {
    {"record", "string", ""},
    {"sets", "array", "strings: the names of the sets that may have it"},
};
inline constexpr Fields kRouteBuildFields = {
    {"file", "string", ""},
    {"sets", "integer", ""},
    {"keys", "integer", ""},
    {"bytes", "integer", ""},
    {"slots", "integer", ""},
    {"probes", "integer", ""},
    {"false_sets", "number", "that an absent key is routed to, expected"},
};
inline constexpr Shapes kJsonRoute = {{"", JsonShape::lines, kRouteFields},
                                      {"--build, --add or --remove", JsonShape::object, kRouteBuildFields}};

inline constexpr Fields kExactBuildFields = {
    {"file", "string", ""},
    {"family", "string", "exact"},
    {"members", "integer", "distinct"},
    {"universe", "integer", "keys, members included"},
    {"members_read", "integer", "records"},
    {"universe_read", "integer", "records"},
    {"bytes", "integer", ""},
    {"bits_per_member", "number", ""},
    {"times_limit", "number or null", "the size, by the least that any structure needs on average"},
    {"parts", "integer", "with a density of their own"},
    {"seconds", "number", ""},
};
inline constexpr Fields kExactChangeFields = {
    {"file", "string", ""},
    {"changed", "integer", "answers"},
    {"bytes", "integer", "of the update"},
    {"whole_bytes", "integer", "of the whole set"},
    {"written", "boolean", "false: the update is not smaller than the whole set"},
};
inline constexpr Shapes kJsonExact = {{"build", JsonShape::object, kExactBuildFields},
                                      {"diff or apply", JsonShape::object, kExactChangeFields}};

inline constexpr Fields kAllocateFields = {
    {"budget", "integer", "bytes"},
    {"bytes", "integer", "used"},
    {"wasted_reads", "number", "for an absent key"},
    {"even_bytes", "integer", "with the same bits per key on every level"},
    {"even_wasted_reads", "number", ""},
    {"even_ribbon_wasted_reads", "number?", "with --ribbon: ribbon filters of equal bits per key everywhere"},
    {"bytes_for_even_reads", "integer", "that would waste no more than even bits per key"},
    {"levels[].level", "integer", "from 1"},
    {"levels[].keys", "integer", ""},
    {"levels[].family", "string", ""},
    {"levels[].cost", "number", ""},
    {"levels[].bytes", "integer", ""},
    {"levels[].bits_per_key", "number", ""},
    {"levels[].fpr", "number", ""},
    {"levels[].even_bytes", "integer", ""},
    {"levels[].even_bits_per_key", "number", ""},
    {"levels[].even_fpr", "number", ""},
};
inline constexpr Shapes kJsonAllocate = {{"", JsonShape::object, kAllocateFields}};

inline constexpr Fields kCopyFields = {
    {"file", "string", ""},
    {"key", "string", "on the server"},
    {"format", "string", "redisbloom-bf, redisbloom-cf or line"},
    {"bytes", "integer", ""},
    {"shards", "integer or null", "of the partition; null if the filter is one key"},
    {"shards_here", "integer or null", "that were copied"},
};
inline constexpr Shapes kJsonPush = {{"", JsonShape::object, kCopyFields}};
inline constexpr Shapes kJsonPull = {{"", JsonShape::object, kCopyFields}};

inline constexpr Fields kBenchFields = {
    {"family", "string", ""},
    {"keys", "integer", ""},
    {"bytes", "integer", ""},
    {"threads", "integer", ""},
    {"rounds", "integer", ""},
    {"build_ns", "number", "per key, the median of the rounds"},
    {"build_ns_low", "number", "the lower quartile"},
    {"build_ns_high", "number", "the upper quartile"},
    {"single_ns", "number", "per lookup"},
    {"single_ns_low", "number", ""},
    {"single_ns_high", "number", ""},
    {"batch_ns", "number", ""},
    {"batch_ns_low", "number", ""},
    {"batch_ns_high", "number", ""},
    {"fpr", "number", "measured"},
};
inline constexpr Fields kBenchHashFields = {
    {"hash", "string", ""},
    {"bits", "integer", "of its result"},
    {"length", "integer", "of the key, bytes"},
    {"ns", "number", "per key"},
    {"ns_low", "number", ""},
    {"ns_high", "number", ""},
    {"probe_ns", "number", "of a lookup without its hash"},
    {"lookup_share", "number", "of the hash in a whole lookup"},
};
inline constexpr Shapes kJsonBench = {{"", JsonShape::array, kBenchFields},
                                      {"hash", JsonShape::array, kBenchHashFields}};

}  // namespace perhaps::cli
