// Attributes: each field of an instruction as its attribute in HLO text.
#include "absl/strings/str_join.h"
#include "compiler/import/hlo_proto_reader.h"

namespace kiln {

using proto::HloInstructionProto;

absl::Status ProtoReader::ReadCalled(const HloInstructionProto& p, const Instruction& i, Attributes& a) {
  std::vector<Computation*> called;
  for (int64_t id : p.called_computation_ids()) {
    auto it = by_id_.find(id);
    if (it == by_id_.end()) return Fail(p.name(), absl::StrCat("calls computation ", id, ", which the module lacks"));
    called.push_back(it->second);
  }
  auto need_called = [&](size_t n) -> absl::Status {
    return called.size() >= n ? absl::OkStatus()
                              : Fail(p.name(), absl::StrCat(p.opcode(), " needs ", n, " called computations"));
  };
  switch (i.opcode()) {
    case Opcode::While:
      RETURN_IF_ERROR(need_called(2));
      a.body = called[0];
      a.condition = called[1];
      break;
    case Opcode::Conditional:
      if (i.operand_count() && i.operand(0)->shape().type() == PrimitiveType::Pred && called.size() == 2) {
        a.true_computation = called[0];
        a.false_computation = called[1];
      } else {
        a.branch_computations = called;
      }
      break;
    case Opcode::SelectAndScatter:
      RETURN_IF_ERROR(need_called(2));
      a.select = called[0];
      a.scatter = called[1];
      break;
    case Opcode::Fusion:
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::AsyncDone:
      if (!called.empty()) a.calls = called[0];
      break;
    case Opcode::CustomCall:
      if (!called.empty()) a.called_computations = called;
      break;
    default:
      if (!called.empty()) a.to_apply = called[0];
  }
  return absl::OkStatus();
}

absl::Status ProtoReader::ReadFft(const HloInstructionProto& p, Attributes& a) {
  static constexpr FftType kTypes[] = {FftType::FFT, FftType::IFFT, FftType::RFFT, FftType::IRFFT};
  if (p.fft_type() < 0 || p.fft_type() > 3) return Fail(p.name(), "unknown fft_type");
  a.fft_type = kTypes[p.fft_type()];
  a.fft_length = ToInts(p.fft_length());
  return absl::OkStatus();
}

absl::Status ProtoReader::ReadTriangularSolve(const HloInstructionProto& p, Attributes& a) {
  // 0 is TRANSPOSE_INVALID.
  static constexpr TransposeA kForms[] = {TransposeA::NO_TRANSPOSE, TransposeA::NO_TRANSPOSE, TransposeA::TRANSPOSE,
                                          TransposeA::ADJOINT};
  const auto& t = p.triangular_solve_options();
  if (t.transpose_a() < 1 || t.transpose_a() > 3) return Fail(p.name(), "unknown transpose_a");
  if (t.left_side()) a.left_side = true;
  if (t.lower()) a.lower = true;
  if (t.unit_diagonal()) a.unit_diagonal = true;
  a.transpose_a = kForms[t.transpose_a()];
  return absl::OkStatus();
}

absl::Status ProtoReader::ReadCustomCall(const HloInstructionProto& p, Attributes& a) {
  a.custom_call_target = attr::Str(p.custom_call_target());
  if (p.custom_call_has_side_effect()) a.custom_call_has_side_effect = true;
  // 0 is API_VERSION_UNSPECIFIED; 1, the original, is what HLO text leaves out.
  if (p.custom_call_api_version() >= 2 && p.custom_call_api_version() <= 4)
    a.api_version = static_cast<ApiVersion>(p.custom_call_api_version() - 1);
  if (p.custom_call_schedule() == 1) a.schedule = CustomCallSchedule::SCHEDULE_LATEST;
  if (p.custom_call_schedule() == 2) a.schedule = CustomCallSchedule::SCHEDULE_EARLIEST;
  if (p.constrain_layout()) {
    std::vector<std::string> shapes;
    for (const auto& s : p.operand_shapes_with_layout()) {
      ASSIGN_OR_RETURN(const Shape shape, ToShape(s));
      shapes.push_back(shape.ToString());
    }
    a.operand_layout_constraints = attr::Raw(absl::StrCat("{", absl::StrJoin(shapes, ", "), "}"));
  }
  return absl::OkStatus();
}

absl::Status ProtoReader::ReadOutfeed(const HloInstructionProto& p, Attributes& a) {
  a.outfeed_config = attr::Str(p.outfeed_config());
  if (p.has_outfeed_shape()) {
    ASSIGN_OR_RETURN(a.outfeed_shape, ToShape(p.outfeed_shape()));
  }
  return absl::OkStatus();
}

absl::Status ProtoReader::ReadOwn(const HloInstructionProto& p, Opcode opcode, Attributes& a) {
  switch (opcode) {
    case Opcode::GetTupleElement:
      a.tuple_index = p.tuple_index();
      break;
    case Opcode::Iota:
      a.iota_dimension = p.dimensions_size() ? p.dimensions(0) : 0;
      break;
    case Opcode::Broadcast:
    case Opcode::Transpose:
    case Opcode::Reverse:
    case Opcode::Concatenate:
    case Opcode::Reduce:
    case Opcode::Sort:
    case Opcode::Map:
    case Opcode::GetDimensionSize:
    case Opcode::SetDimensionSize:
    case Opcode::AllGather:
    case Opcode::AllGatherStart:
    case Opcode::ReduceScatter:
      a.dimensions = ToInts(p.dimensions());
      break;
    case Opcode::AllToAll:
      if (p.dimensions_size()) a.dimensions = ToInts(p.dimensions());
      break;
    case Opcode::DynamicSlice:
      a.dynamic_slice_sizes = ToInts(p.dynamic_slice_sizes());
      break;
    case Opcode::Fusion:
      return ReadWord(p, "fusion_kind", p.fusion_kind(), &a.fusion_kind);
    case Opcode::ReducePrecision:
      a.exponent_bits = p.exponent_bits();
      a.mantissa_bits = p.mantissa_bits();
      break;
    case Opcode::Compare:
      if (p.comparison_type() == "TOTALORDER") a.compare_type = CompareType::TOTALORDER;
      return ReadWord(p, "comparison_direction", p.comparison_direction(), &a.direction);
    case Opcode::Rng:
      a.distribution = p.distribution() == 2 ? Distribution::rng_normal : Distribution::rng_uniform;
      break;
    case Opcode::RngBitGenerator:
      a.algorithm = p.rng_algorithm() == 1 ? "rng_three_fry" : p.rng_algorithm() == 2 ? "rng_philox" : "rng_default";
      break;
    case Opcode::RngGetAndUpdateState:
      a.delta = p.delta();
      break;
    case Opcode::BatchNormGrad:
    case Opcode::BatchNormInference:
    case Opcode::BatchNormTraining:
      a.epsilon = p.epsilon();
      a.feature_index = p.feature_index();
      break;
    case Opcode::Fft:
      return ReadFft(p, a);
    case Opcode::TriangularSolve:
      return ReadTriangularSolve(p, a);
    case Opcode::Cholesky:
      if (p.cholesky_options().lower()) a.lower = true;
      break;
    case Opcode::CustomCall:
      return ReadCustomCall(p, a);
    case Opcode::TopK:
      a.k = p.k();
      a.largest = p.largest();
      break;
    case Opcode::Infeed:
      a.infeed_config = attr::Str(p.infeed_config());
      break;
    case Opcode::Outfeed:
      return ReadOutfeed(p, a);
    default:
      break;
  }
  return absl::OkStatus();
}

absl::Status ProtoReader::ReadAttributes(const HloInstructionProto& p, Instruction* i) {
  Attributes& a = i->mutable_attrs();
  RETURN_IF_ERROR(ReadCalled(p, *i, a));
  RETURN_IF_ERROR(ReadOwn(p, i->opcode(), a));
  RETURN_IF_ERROR(ReadDimensionNumbers(p, i->opcode(), a));
  if (p.feature_group_count() > 1) a.feature_group_count = p.feature_group_count();
  if (p.batch_group_count() > 1) a.batch_group_count = p.batch_group_count();
  if (p.is_stable()) a.is_stable = true;
  if (p.channel_id()) a.channel_id = p.channel_id();
  if (p.use_global_device_ids()) a.use_global_device_ids = true;
  if (p.is_host_transfer()) a.is_host_transfer = true;
  if (p.is_composite()) a.is_composite = true;
  ReadTexts(p, a);
  return absl::OkStatus();
}

}  // namespace kiln
