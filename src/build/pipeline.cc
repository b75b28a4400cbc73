// The pipeline of filters (static.h): that of pipeline.h over digests.
#include "build/pipeline.h"

#include <deque>

namespace perhaps::detail {
namespace {

using DigestPipeline = build::Pipeline<StaticFamily, std::uint64_t, StaticRun>;

}  // namespace

class StaticPipeline::Lane {
 public:
  DigestPipeline::Lane& digests;
};

struct StaticPipeline::State {
  DigestPipeline pipeline;
  std::mutex lanes_mutex;
  std::deque<Lane> lanes;
};

StaticPipeline::StaticPipeline(BuildOptions options) : state_(new State{DigestPipeline(std::move(options)), {}, {}}) {}
StaticPipeline::~StaticPipeline() = default;

std::unique_ptr<StaticPipeline> StaticPipeline::make(BuildOptions options) {
  // NOLINTNEXTLINE(modernize-make-unique): its constructor is private
  return std::unique_ptr<StaticPipeline>(new StaticPipeline(std::move(options)));
}

std::uint64_t StaticPipeline::spilled_bytes() const noexcept { return state_->pipeline.spilled_bytes(); }

StaticPipeline::Lane& StaticPipeline::add_lane() {
  DigestPipeline::Lane& lane = state_->pipeline.add_lane();
  const std::lock_guard lock(state_->lanes_mutex);
  return state_->lanes.emplace_back(Lane{lane});
}

bool StaticPipeline::add(Lane& lane, const std::uint64_t* digests, std::size_t count) {
  return DigestPipeline::add(lane.digests, {digests, count});
}

void StaticPipeline::share_out(std::uint64_t count,
                               const std::function<void(Lane&, std::uint64_t, std::uint64_t)>& work) {
  state_->pipeline.share_out(
      count, [this]() -> Lane& { return add_lane(); }, work);
}

Result<Memory> StaticPipeline::finish(StaticFamily& family) { return state_->pipeline.finish(family); }

}  // namespace perhaps::detail
