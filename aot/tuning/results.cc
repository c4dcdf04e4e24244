#include "aot/tuning/results.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "aot/text_proto.h"
#include "aot/tuning/tunables.h"
#include "aot/tuning/tuning.pb.h"
#include "codegen/cpu/choice_plan.h"
#include "compiler/base/text.h"
#include "compiler/hlo/library_calls.h"

namespace kiln {

namespace {

// Choices of CPU levels are those of codegen/cpu/choices.def.
absl::Status CheckChoice(const std::string& place, const std::string& level, const tuning::Candidate& c) {
  const auto choices = static_cast<int64_t>(cpu::ProductChoices().size());
  if (level == "native" || !FindCpuLevel(level).ok())
    return InvalidArgument(place, ": error: '", level, "' is neither a GPU (sm_90) nor an x86-64 level (v4)");
  if (c.algorithm() >= 0 && c.algorithm() < choices) return absl::OkStatus();
  return InvalidArgument(place, ": error: algorithm ", c.algorithm(), " is none of the choices of this kiln, 0 to ",
                         choices - 1, ": measure it again (kiln tune)");
}

// A library's algorithm is named by its words: its number means another one in another version.
absl::Status CheckAlgorithm(const std::string& place, const tuning::Entry& e, const tuning::Candidate& c) {
  constexpr size_t kDigits = 128;
  const std::string& words = c.library_algorithm();
  const bool library = absl::StrContains(e.hlo(), absl::StrCat("\"", kGemmTarget, "\""));
  if (words.empty() && !library) return absl::OkStatus();
  const auto problem = [&](absl::string_view what) {
    return InvalidArgument(place, ": error: key ", e.key(), ", algorithm ", c.algorithm(), ": ", what);
  };
  if (words.empty() || c.library_version() <= 0)
    return problem(
        "the result of an older kiln names a library's algorithm by its place alone, which another version of the "
        "library changes: measure it again (kiln tune)");
  if (words.size() != kDigits || words.find_first_not_of("0123456789abcdef") != words.npos)
    return problem("library_algorithm is not 128 hexadecimal digits");
  return absl::OkStatus();
}

gpu::LibraryAlgorithm AlgorithmOf(const tuning::Candidate& c) {
  constexpr size_t kDigits = 16;  // of a word
  gpu::LibraryAlgorithm out{c.algorithm(), c.library_version(), {}};
  const absl::string_view text = c.library_algorithm();
  for (size_t at = 0; at < text.size(); at += kDigits) {
    uint64_t word = 0;
    (void)absl::SimpleHexAtoi(text.substr(at, kDigits), &word);
    out.words.push_back(word);
  }
  return out;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TuningResults>> LoadTuning(const std::vector<std::string>& files,
                                                                const std::string& denylist, const TuningResults* known,
                                                                gpu::LibraryAlgorithms* words,
                                                                std::vector<std::string>* texts) {
  auto out = known ? std::make_shared<TuningResults>(*known) : std::make_shared<TuningResults>();
  std::vector<tuning::Results> all;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
    if (texts) texts->push_back(text);
    FieldPlaces places(file);
    ASSIGN_OR_RETURN(tuning::Results results,
                     ParseTextProto<tuning::Results>(text, file, "tuning results (kiln.tuning.Results)", &places));
    for (int device = 0; device < results.devices_size(); ++device)
      for (int entry = 0; entry < results.devices(device).entries_size(); ++entry)
        for (int candidate = 0; candidate < results.devices(device).entries(entry).candidates_size(); ++candidate) {
          const tuning::Device& d = results.devices(device);
          const tuning::Entry& e = d.entries(entry);
          const tuning::Candidate& c = e.candidates(candidate);
          if (!c.failure().empty()) continue;
          const std::string place = places.Of(tuning::Results::descriptor(),
                                              {{"devices", device}, {"entries", entry}, {"candidates", candidate}});
          if (IsGpuTarget(d.target()))
            RETURN_IF_ERROR(CheckAlgorithm(place, e, c));
          else
            RETURN_IF_ERROR(CheckChoice(place, d.target(), c));
          out->Add(d.target(), e.key(), {c.algorithm(), c.scratch_bytes(), c.microseconds()});
          if (words && !c.library_algorithm().empty()) (*words)[{d.target(), e.key(), c.algorithm()}] = AlgorithmOf(c);
        }
    all.push_back(std::move(results));
  }
  if (denylist.empty()) return out;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(denylist));
  if (texts) texts->push_back(text);
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
