#include "compiler/hlo/infer_rules.h"

namespace kiln::infer {

namespace {

std::vector<Shape> OperandShapes(const Instruction& i) {
  std::vector<Shape> out;
  for (const Instruction* o : i.operands()) out.push_back(o->shape());
  return out;
}

Shape OneOf(std::vector<Shape> shapes) { return shapes.size() == 1 ? shapes[0] : Shape::Tuple(std::move(shapes)); }

// How often the result (operand) has the operand's (result's) extent along the dimension of an all-gather
// (reduce-scatter), by the shape that the text states.
absl::StatusOr<std::vector<Shape>> Scaled(const Instruction& i, const Shape& result, bool gathers) {
  REQUIRE(i.operand_count() > 0, "takes operands");
  REQUIRE(i.attrs().dimensions && i.attrs().dimensions->size() == 1, "takes one dimension");
  const int64_t d = (*i.attrs().dimensions)[0];
  const bool one = i.operand_count() == 1;
  REQUIRE(one ? result.IsArray() : result.IsTuple() && static_cast<int64_t>(result.tuple().size()) == i.operand_count(),
          "result is ", result.ToString(false), " for ", i.operand_count(), " operands");
  std::vector<Shape> out;
  int64_t count = -1;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    Shape x = i.operand(k)->shape();
    const Shape& r = one ? result : result.tuple()[k];
    REQUIRE(x.IsArray() && d >= 0 && d < x.rank() && r.IsArray() && r.rank() == x.rank(), "dimension ", d,
            " does not fit operand ", x.ToString(false), " and result ", r.ToString(false));
    const int64_t large = gathers ? r.dim(d) : x.dim(d), small = gathers ? x.dim(d) : r.dim(d);
    if (count < 0 && small > 0) count = (large + small - 1) / small;
    if (large < 0 || small < 0) return std::vector<Shape>{result};
    if (count >= 0) {
      REQUIRE(gathers ? r.dim(d) == x.dim(d) * count : r.dim(d) == (x.dim(d) + count - 1) / std::max<int64_t>(count, 1),
              "extent ", x.dim(d), " of operand ", k, " becomes ", r.dim(d), ", but the first operand's is ",
              gathers ? "multiplied" : "divided", " by ", count);
    }
    x.mutable_dims()[d] = r.dim(d);
    out.push_back(Shape::Array(x.type(), x.dims()));
  }
  return out;
}

// ((operands), (results), ...) or, for one of each, (operand, result, ...).
absl::StatusOr<Shape> StartOf(const Instruction& i, std::vector<Shape> results, Given given, bool context) {
  std::vector<Shape> parts = {OneOf(OperandShapes(i)), OneOf(std::move(results))};
  if (given && context && given->IsTuple())
    for (size_t k = 2; k < given->tuple().size(); ++k) parts.push_back(given->tuple()[k]);
  return Shape::Tuple(std::move(parts));
}

absl::StatusOr<Shape> Part(const Instruction& i, size_t k) {
  const Shape& s = i.operand(0)->shape();
  REQUIRE(s.IsTuple() && s.tuple().size() > k, "operand is ", s.ToString(false), ", not what a start gives");
  return s.tuple()[k];
}

}  // namespace

absl::StatusOr<Shape> Collective(const Instruction& i, Given given) {
  const absl::string_view stated = "needs a shape: how many devices meet is not known here";
  switch (i.opcode()) {
    case Opcode::AllReduce:
    case Opcode::AllReduceStart:
      REQUIRE(i.attrs().to_apply, "to_apply is missing");
      [[fallthrough]];
    case Opcode::CollectiveBroadcast:
      REQUIRE(i.operand_count() > 0, "takes operands");
      for (const Instruction* o : i.operands())
        REQUIRE(o->shape().IsArray(), "takes arrays, not ", o->shape().ToString(false));
      return OneOrTuple(OperandShapes(i), given);
    case Opcode::AllGather: {
      REQUIRE(given, stated);
      ASSIGN_OR_RETURN(std::vector<Shape> results, Scaled(i, *given, true));
      return OneOf(std::move(results));
    }
    case Opcode::AllGatherStart: {
      REQUIRE(given, stated);
      if (given->IsArray()) {  // some print the result's alone
        ASSIGN_OR_RETURN(std::vector<Shape> results, Scaled(i, *given, true));
        return OneOf(std::move(results));
      }
      REQUIRE(given->IsTuple() && given->tuple().size() >= 2, "shape is not (operands, results)");
      ASSIGN_OR_RETURN(std::vector<Shape> results, Scaled(i, given->tuple()[1], true));
      return StartOf(i, std::move(results), given, true);
    }
    case Opcode::ReduceScatter: {
      REQUIRE(given, stated);
      REQUIRE(i.attrs().to_apply, "to_apply is missing");
      ASSIGN_OR_RETURN(std::vector<Shape> results, Scaled(i, *given, false));
      return OneOf(std::move(results));
    }
    case Opcode::AllToAll:
      REQUIRE(i.operand_count() > 0, "takes operands");
      if (i.attrs().dimensions) {
        REQUIRE(i.operand_count() == 1, "with dimensions takes one array, not ", i.operand_count());
        REQUIRE(i.attrs().dimensions->size() == 1, "takes one dimension");
        RETURN_IF_ERROR(CheckDims(*i.attrs().dimensions, i.operand(0)->shape().rank(), "dimension"));
        return i.operand(0)->shape();
      }
      for (const Instruction* o : i.operands())
        REQUIRE(o->shape().Compatible(i.operand(0)->shape()),
                "operand shapes differ: ", i.operand(0)->shape().ToString(false), " and ", o->shape().ToString(false));
      return Shape::Tuple(OperandShapes(i));
    case Opcode::RaggedAllToAll: {
      const Shape &in = i.operand(0)->shape(), &out = i.operand(1)->shape();
      REQUIRE(in.IsArray() && out.IsArray() && in.type() == out.type() && in.rank() == out.rank(), "input is ",
              in.ToString(false), ", output ", out.ToString(false));
      for (int64_t k = 2; k < 6; ++k) {
        const Shape& s = i.operand(k)->shape();
        REQUIRE(s.IsArray() && IsIntegral(s.type()) && s.dims() == i.operand(2)->shape().dims(), "operand ", k, " is ",
                s.ToString(false), ", not integers like ", i.operand(2)->shape().ToString(false));
      }
      return out;
    }
    case Opcode::CollectivePermute:
    case Opcode::CollectivePermuteStart: {
      REQUIRE(i.operand_count() > 0, "takes operands");
      std::vector<Shape> results = OperandShapes(i);
      for (const Shape& s : results) REQUIRE(s.IsArray(), "takes arrays, not ", s.ToString(false));
      return i.Is(Opcode::CollectivePermute) || (given && given->IsArray())
                 ? OneOf(std::move(results))
                 : StartOf(i, std::move(results), given, true);
    }
    case Opcode::AllReduceDone:
      return i.operand(0)->shape();
    case Opcode::AllGatherDone:
    case Opcode::CollectivePermuteDone:
      return i.operand(0)->shape().IsArray() ? i.operand(0)->shape() : Part(i, 1);
    default:
      return Internal(TextOf(i.opcode()), " is no collective");
  }
}

absl::StatusOr<Shape> Asynchronous(const Instruction& i, Given given) {
  switch (i.opcode()) {
    case Opcode::AsyncStart: {
      REQUIRE(given, "needs a shape: that of its context is not known");
      REQUIRE(i.attrs().calls, "wraps no computation");
      const Computation* c = *i.attrs().calls;
      ASSIGN_OR_RETURN(Shape result, ResultOfCall(i, c, "computation"));
      std::vector<Shape> parts = {Shape::Tuple({}), std::move(result)};
      for (const Instruction* p : c->parameters()) parts[0].mutable_tuple().push_back(p->shape());
      REQUIRE(given->IsTuple() && given->tuple().size() >= 2, "shape is not ((operands), results, ...)");
      for (size_t k = 2; k < given->tuple().size(); ++k) parts.push_back(given->tuple()[k]);
      return Shape::Tuple(std::move(parts));
    }
    case Opcode::AsyncUpdate:
      return i.operand(0)->shape();
    case Opcode::AsyncDone:
      return Part(i, 1);
    case Opcode::CopyStart:
      return Shape::Tuple({i.operand(0)->shape(), i.operand(0)->shape(), Shape::Scalar(PrimitiveType::U32)});
    case Opcode::CopyDone:
      return Part(i, 0);
    default:
      return Internal(TextOf(i.opcode()), " is not asynchronous");
  }
}

absl::StatusOr<Shape> Transfer(const Instruction& i, Given given) {
  const auto token = [&](int64_t k) -> absl::Status {
    REQUIRE(i.operand(k)->shape().IsToken(), "operand ", k, " is ", i.operand(k)->shape().ToString(false),
            ", not a token");
    return absl::OkStatus();
  };
  switch (i.opcode()) {
    case Opcode::Send:
      return Shape::Tuple({i.operand(0)->shape(), Shape::Scalar(PrimitiveType::U32), Shape::Token()});
    case Opcode::Recv:
      REQUIRE(given, "needs a shape: what it receives is not known");
      REQUIRE(given->IsTuple() && given->tuple().size() == 3, "shape is not (data, u32[], token[])");
      return Shape::Tuple({given->tuple()[0], Shape::Scalar(PrimitiveType::U32), Shape::Token()});
    case Opcode::SendDone:
      return Shape::Token();
    case Opcode::RecvDone: {
      ASSIGN_OR_RETURN(Shape data, Part(i, 0));
      return Shape::Tuple({std::move(data), Shape::Token()});
    }
    case Opcode::Infeed:
      RETURN_IF_ERROR(token(0));
      REQUIRE(given, "needs a shape: what it reads is not known");
      REQUIRE(given->IsTuple() && given->tuple().size() == 2, "shape is not (data, token[])");
      return Shape::Tuple({given->tuple()[0], Shape::Token()});
    case Opcode::Outfeed:
      RETURN_IF_ERROR(token(1));
      REQUIRE(!i.attrs().outfeed_shape || i.attrs().outfeed_shape->Compatible(i.operand(0)->shape()),
              "outfeed_shape is ", i.attrs().outfeed_shape->ToString(false), ", the operand ",
              i.operand(0)->shape().ToString(false));
      return Shape::Token();
    default:
      return Internal(TextOf(i.opcode()), " is no transfer");
  }
}

}  // namespace kiln::infer
