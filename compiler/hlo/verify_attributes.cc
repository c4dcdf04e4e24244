// Which attributes an opcode has, and what they may be, as data.
#include <bitset>
#include <vector>

#include "absl/strings/str_split.h"
#include "compiler/hlo/verify_rules.h"

namespace kiln::verify {
namespace {

// One enumerator for each row of attributes.def.
enum class Attr : uint8_t {
#define ATTR(field, kind, text) field,
#include "compiler/hlo/attributes.def"
};

constexpr int kAttrCount = 0
#define ATTR(field, kind, text) +1
#include "compiler/hlo/attributes.def"
    ;

using AttrSet = std::bitset<kAttrCount>;

struct OpAttributes {
  AttrSet required;
  AttrSet allowed;  // the required and the general ones included
};

AttrSet SetOf(std::initializer_list<Attr> list) {
  AttrSet s;
  for (Attr a : list) s.set(static_cast<size_t>(a));
  return s;
}

// ATTRS(Opcode, REQUIRED(...), ALLOWED(...))
// The names are those of attributes.def's rows. An opcode without a row has none but the general ones, which every
// instruction may carry: GENERAL. Source: what XLA's text parser accepts for each opcode. A constant's
// custom_call_literal is kiln's own: "{...}" where its elements were elided (parser.cc).
std::vector<OpAttributes> MakeTable() {
  using enum Attr;
  std::vector<OpAttributes> table(static_cast<size_t>(OpcodeCount()));
#define REQUIRED(...) SetOf({__VA_ARGS__})
#define ALLOWED(...) SetOf({__VA_ARGS__})
#define ATTRS(op, needed, more) table[static_cast<size_t>(Opcode::op)] = {needed, (needed) | (more)};
#define GENERAL(...)                            \
  const AttrSet general = SetOf({__VA_ARGS__}); \
  for (OpAttributes & row : table) row.allowed |= general;
  ATTRS(Acos, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(Acosh, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(AllGather, REQUIRED(dimensions), ALLOWED(replica_groups, channel_id, use_global_device_ids, constrain_layout))
  ATTRS(AllGatherStart, REQUIRED(dimensions),
        ALLOWED(replica_groups, channel_id, use_global_device_ids, constrain_layout))
  ATTRS(AllReduce, REQUIRED(to_apply),
        ALLOWED(replica_groups, channel_id, use_global_device_ids, constrain_layout, collective_mode))
  ATTRS(AllReduceStart, REQUIRED(to_apply),
        ALLOWED(replica_groups, channel_id, use_global_device_ids, constrain_layout, collective_mode))
  ATTRS(AllToAll, REQUIRED(), ALLOWED(dimensions, replica_groups, channel_id, constrain_layout))
  ATTRS(Asin, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(Asinh, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(AsyncDone, REQUIRED(), ALLOWED(calls, async_execution_thread))
  ATTRS(AsyncStart, REQUIRED(calls), ALLOWED(output_to_operand_aliasing, async_execution_thread))
  ATTRS(AsyncUpdate, REQUIRED(), ALLOWED(calls, async_execution_thread))
  ATTRS(Atanh, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(BatchNormGrad, REQUIRED(epsilon, feature_index), ALLOWED())
  ATTRS(BatchNormInference, REQUIRED(epsilon, feature_index), ALLOWED())
  ATTRS(BatchNormTraining, REQUIRED(epsilon, feature_index), ALLOWED())
  ATTRS(Broadcast, REQUIRED(dimensions), ALLOWED())
  ATTRS(Call, REQUIRED(to_apply), ALLOWED(is_composite))
  ATTRS(Cbrt, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(Cholesky, REQUIRED(), ALLOWED(lower))
  ATTRS(CollectiveBroadcast, REQUIRED(), ALLOWED(replica_groups, channel_id))
  ATTRS(CollectivePermute, REQUIRED(source_target_pairs), ALLOWED(channel_id))
  ATTRS(CollectivePermuteStart, REQUIRED(source_target_pairs), ALLOWED(channel_id))
  ATTRS(Compare, REQUIRED(direction), ALLOWED(compare_type))
  ATTRS(Concatenate, REQUIRED(dimensions), ALLOWED())
  ATTRS(Conditional, REQUIRED(), ALLOWED(branch_computations, true_computation, false_computation))
  ATTRS(Constant, REQUIRED(), ALLOWED(custom_call_literal))
  ATTRS(Convolution, REQUIRED(dim_labels),
        ALLOWED(window, feature_group_count, batch_group_count, operand_precision, padding_type))
  ATTRS(CopyStart, REQUIRED(), ALLOWED(cross_program_prefetch_index))
  ATTRS(Cosh, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(Cosine, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(CustomCall, REQUIRED(custom_call_target),
        ALLOWED(window, dim_labels, padding_type, feature_group_count, batch_group_count, operand_precision, to_apply,
                called_computations, custom_call_has_side_effect, api_version, schedule, operand_layout_constraints,
                output_to_operand_aliasing, custom_call_literal))
  ATTRS(Domain, REQUIRED(domain), ALLOWED())
  ATTRS(Dot, REQUIRED(),
        ALLOWED(lhs_batch_dims, lhs_contracting_dims, rhs_batch_dims, rhs_contracting_dims, operand_precision,
                algorithm, sparsity))
  ATTRS(DynamicSlice, REQUIRED(dynamic_slice_sizes), ALLOWED())
  ATTRS(Erf, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(Exponential, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(ExponentialMinusOne, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(Fft, REQUIRED(fft_type, fft_length), ALLOWED())
  ATTRS(Fusion, REQUIRED(calls, fusion_kind), ALLOWED(output_to_operand_aliasing))
  ATTRS(Gather, REQUIRED(offset_dims, collapsed_slice_dims, start_index_map, index_vector_dim, slice_sizes),
        ALLOWED(operand_batching_dims, start_indices_batching_dims, indices_are_sorted))
  ATTRS(GetDimensionSize, REQUIRED(dimensions), ALLOWED())
  ATTRS(GetTupleElement, REQUIRED(tuple_index), ALLOWED())
  ATTRS(Infeed, REQUIRED(), ALLOWED(infeed_config))
  ATTRS(Iota, REQUIRED(iota_dimension), ALLOWED())
  ATTRS(Log, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(LogPlusOne, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(Logistic, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(Map, REQUIRED(to_apply), ALLOWED(dimensions))
  ATTRS(Outfeed, REQUIRED(), ALLOWED(outfeed_config, outfeed_shape))
  ATTRS(Pad, REQUIRED(padding), ALLOWED())
  ATTRS(Parameter, REQUIRED(parameter_number), ALLOWED())
  ATTRS(RaggedAllToAll, REQUIRED(), ALLOWED(dimensions, replica_groups, channel_id))
  ATTRS(RaggedDot, REQUIRED(),
        ALLOWED(lhs_batch_dims, lhs_contracting_dims, rhs_batch_dims, rhs_contracting_dims, lhs_ragged_dims,
                rhs_group_dims, operand_precision))
  ATTRS(Recv, REQUIRED(), ALLOWED(channel_id, is_host_transfer))
  ATTRS(RecvDone, REQUIRED(), ALLOWED(channel_id, is_host_transfer))
  ATTRS(Reduce, REQUIRED(dimensions, to_apply), ALLOWED())
  ATTRS(ReducePrecision, REQUIRED(exponent_bits, mantissa_bits), ALLOWED())
  ATTRS(ReduceScatter, REQUIRED(dimensions, to_apply),
        ALLOWED(replica_groups, channel_id, use_global_device_ids, constrain_layout, collective_mode))
  ATTRS(ReduceWindow, REQUIRED(to_apply), ALLOWED(window))
  ATTRS(Reverse, REQUIRED(dimensions), ALLOWED())
  ATTRS(Rng, REQUIRED(distribution), ALLOWED())
  ATTRS(RngBitGenerator, REQUIRED(algorithm), ALLOWED())
  ATTRS(RngGetAndUpdateState, REQUIRED(delta), ALLOWED())
  ATTRS(Rsqrt, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(
      ScaledDot, REQUIRED(),
      ALLOWED(lhs_batch_dims, lhs_contracting_dims, rhs_batch_dims, rhs_contracting_dims, operand_precision, algorithm))
  ATTRS(Scan, REQUIRED(scan_dimension, to_apply), ALLOWED(num_carries, is_reverse, is_associative))
  ATTRS(Scatter,
        REQUIRED(update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, index_vector_dim, to_apply),
        ALLOWED(input_batching_dims, scatter_indices_batching_dims, indices_are_sorted, unique_indices))
  ATTRS(SelectAndScatter, REQUIRED(select, scatter), ALLOWED(window))
  ATTRS(Send, REQUIRED(), ALLOWED(channel_id, is_host_transfer))
  ATTRS(SendDone, REQUIRED(), ALLOWED(channel_id, is_host_transfer))
  ATTRS(SetDimensionSize, REQUIRED(dimensions), ALLOWED())
  ATTRS(Sine, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(Sinh, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(Slice, REQUIRED(slice), ALLOWED())
  ATTRS(Sort, REQUIRED(to_apply), ALLOWED(dimensions, is_stable))
  ATTRS(Sqrt, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(Tan, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(Tanh, REQUIRED(), ALLOWED(result_accuracy))
  ATTRS(TopK, REQUIRED(k), ALLOWED(largest, is_stable))
  ATTRS(Transpose, REQUIRED(dimensions), ALLOWED())
  ATTRS(TriangularSolve, REQUIRED(), ALLOWED(lower, left_side, unit_diagonal, transpose_a))
  ATTRS(While, REQUIRED(condition, body), ALLOWED())
  GENERAL(backend_config, frontend_attributes, metadata, origin, parameter_replication, sharding, statistics,
          original_value)
#undef REQUIRED
#undef ALLOWED
#undef ATTRS
#undef GENERAL
  return table;
}

constexpr absl::string_view kSpellings[] = {
#define ATTR(field, kind, text) text[0] ? text : #field,
#include "compiler/hlo/attributes.def"
};

absl::string_view TextOf(Attr a) { return kSpellings[static_cast<size_t>(a)]; }

AttrSet PresentIn(const Attributes& a) {
  AttrSet s;
#define ATTR(field, kind, text) s[static_cast<size_t>(Attr::field)] = a.field.has_value();
#include "compiler/hlo/attributes.def"
  return s;
}

absl::Status CheckWord(const Instruction& i, absl::string_view what, const std::string& value,
                       absl::string_view words) {
  for (absl::string_view w : absl::StrSplit(words, ' '))
    if (value == w) return absl::OkStatus();
  return ErrorAt(&i, absl::StrCat(what, " '", value, "' is none of ", words));
}

}  // namespace

absl::Status CheckAttributes(const Instruction& i) {
  const AttrSet present = PresentIn(i.attrs());
  static const auto* table = new std::vector<OpAttributes>(MakeTable());
  const OpAttributes& rules = (*table)[static_cast<size_t>(i.opcode())];
  if (const AttrSet wrong = present & ~rules.allowed; wrong.any())
    return ErrorAt(&i, absl::StrCat("has no attribute ", TextOf(static_cast<Attr>(wrong._Find_first()))));
  if (const AttrSet missing = rules.required & ~present; missing.any())
    return ErrorAt(&i, absl::StrCat("attribute ", TextOf(static_cast<Attr>(missing._Find_first())), " is missing"));
  const Attributes& a = i.attrs();
#define WORDS(field, words) \
  if (a.field) RETURN_IF_ERROR(CheckWord(i, TextOf(Attr::field), a.field->text, words));
#define AT_LEAST(field, low)       \
  if (a.field && *a.field < (low)) \
    return ErrorAt(&i, absl::StrCat(TextOf(Attr::field), " is ", int64_t{*a.field}, ", less than ", low));
  // WORDS(field, "A B"): one of these words. AT_LEAST(field, low): an integer. Values that depend on shapes
  // (dimensions, window, dim_labels, ...) are the shape rules'.
  WORDS(direction, "EQ NE LT LE GT GE")
  WORDS(compare_type, "FLOAT TOTALORDER SIGNED UNSIGNED")
  WORDS(fusion_kind, "kLoop kInput kOutput kCustom")
  WORDS(fft_type, "FFT IFFT RFFT IRFFT")
  WORDS(transpose_a, "NO_TRANSPOSE TRANSPOSE ADJOINT")
  WORDS(distribution, "rng_uniform rng_normal")
  WORDS(schedule, "SCHEDULE_NONE SCHEDULE_LATEST SCHEDULE_EARLIEST")
  WORDS(api_version,
        "API_VERSION_ORIGINAL API_VERSION_STATUS_RETURNING API_VERSION_STATUS_RETURNING_UNIFIED API_VERSION_TYPED_FFI")
  WORDS(is_associative, "true false")
  WORDS(collective_mode, "flattened_id cross_replica cross_partition cross_replica_and_partition")
  AT_LEAST(parameter_number, 0)
  AT_LEAST(tuple_index, 0)
  AT_LEAST(iota_dimension, 0)
  AT_LEAST(feature_group_count, 1)
  AT_LEAST(batch_group_count, 1)
  AT_LEAST(index_vector_dim, 0)
  AT_LEAST(feature_index, 0)
  AT_LEAST(exponent_bits, 1)
  AT_LEAST(mantissa_bits, 0)
  AT_LEAST(k, 0)
  AT_LEAST(num_carries, 0)
  AT_LEAST(scan_dimension, 0)
#undef WORDS
#undef AT_LEAST
  if (i.Is(Opcode::RngBitGenerator))
    return CheckWord(i, "algorithm", a.algorithm->text, "rng_default rng_three_fry rng_philox");
  return absl::OkStatus();
}

}  // namespace kiln::verify
