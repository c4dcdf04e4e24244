#include "aot/tuning/results.h"

#include "absl/strings/match.h"
#include "aot/text_proto.h"
#include "aot/tuning/tuning.pb.h"
#include "compiler/base/text.h"

namespace kiln {

absl::StatusOr<std::shared_ptr<const TuningResults>> LoadTuning(const std::vector<std::string>& files,
                                                                const std::string& denylist,
                                                                const TuningResults* known) {
  auto out = known ? std::make_shared<TuningResults>(*known) : std::make_shared<TuningResults>();
  std::vector<tuning::Results> all;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
    ASSIGN_OR_RETURN(tuning::Results results,
                     ParseTextProto<tuning::Results>(text, file, "tuning results (kiln.tuning.Results)"));
    for (const tuning::Device& d : results.devices())
      for (const tuning::Entry& e : d.entries())
        for (const tuning::Candidate& c : e.candidates())
          if (c.failure().empty()) out->Add(d.target(), e.key(), {c.algorithm(), c.scratch_bytes(), c.microseconds()});
    all.push_back(std::move(results));
  }
  if (denylist.empty()) return out;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(denylist));
  ASSIGN_OR_RETURN(const tuning::Denylist list,
                   ParseTextProto<tuning::Denylist>(text, denylist, "a denylist (kiln.tuning.Denylist)"));
  for (const tuning::Denied& d : list.denied()) {
    bool applies = d.versions().empty();
    for (const tuning::Results& r : all)
      for (const tuning::Device& device : r.devices())
        applies = applies || (device.target() == d.target() && absl::StrContains(device.versions(), d.versions()));
    if (applies) out->Deny(d.target(), d.key(), d.algorithm());
  }
  return out;
}

}  // namespace kiln
