// The reader of HLO protos (import.h); for hlo_proto*.cc alone.
#pragma once

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "compiler/import/hlo.pb.h"
#include "compiler/import/import.h"

namespace kiln {

class ProtoReader {
 public:
  ProtoReader(const proto::HloModuleProto& p, const std::string& file, const Limits& limits)
      : p_(p), file_(file), limits_(limits) {}

  absl::StatusOr<std::unique_ptr<Module>> Run();

 private:
  absl::Status Fail(absl::string_view where, absl::string_view why) {
    return InvalidArgument(file_, ":0:0: error: ", where, ": ", why);
  }
  absl::StatusOr<Shape> ToShape(const proto::ShapeProto& s, int depth = 0);
  absl::StatusOr<Literal> ToLiteral(const proto::LiteralProto& l, int depth = 0);
  absl::Status ReadComputation(const proto::HloComputationProto& c, Computation* out);
  absl::Status ReadAttributes(const proto::HloInstructionProto& p, Instruction* i);
  // Parts of it: called computations; what the opcode alone has; what names dimensions; what is text within text.
  absl::Status ReadCalled(const proto::HloInstructionProto& p, const Instruction& i, Attributes& a);
  absl::Status ReadOwn(const proto::HloInstructionProto& p, Opcode opcode, Attributes& a);
  absl::Status ReadDimensionNumbers(const proto::HloInstructionProto& p, Opcode opcode, Attributes& a);
  static void ReadTexts(const proto::HloInstructionProto& p, Attributes& a);
  // One of the words of a field.
  template <AttributeWord E>
  absl::Status ReadWord(const proto::HloInstructionProto& p, absl::string_view field, const std::string& text,
                        std::optional<E>* out) {
    const auto word = WordFromText<E>(text);
    if (!word.ok()) return Fail(p.name(), absl::StrCat(field, " ", word.status().message()));
    *out = *word;
    return absl::OkStatus();
  }
  absl::Status ReadFft(const proto::HloInstructionProto& p, Attributes& a);
  absl::Status ReadTriangularSolve(const proto::HloInstructionProto& p, Attributes& a);
  absl::Status ReadCustomCall(const proto::HloInstructionProto& p, Attributes& a);
  absl::Status ReadOutfeed(const proto::HloInstructionProto& p, Attributes& a);
  absl::Status ReadSchedule();

  const proto::HloModuleProto& p_;
  std::string file_;
  const Limits limits_;
  std::unique_ptr<Module> m_;
  absl::flat_hash_map<int64_t, Computation*> by_id_;
  // By id, of every computation.
  absl::flat_hash_map<const Computation*, absl::flat_hash_map<int64_t, Instruction*>> values_;
};

template <typename R>
Ints ToInts(const R& r) {
  return Ints(r.begin(), r.end());
}

// As HLO text writes them, keys in order: a map of a proto has none.
std::string FrontendText(const proto::FrontendAttributes& attributes);

}  // namespace kiln
