// Convolutions by plain loops, features innermost: for each output position, each tap adds a row of features.
#include "codegen/cpu/contractions.h"
#include "codegen/elemental/element.h"

namespace kiln::cpu {
namespace {

class DirectConvolution {
 public:
  DirectConvolution(Body& body, const ConvolutionPlan& plan, const Epilogue& epilogue)
      : body_(body),
        epilogue_(epilogue),
        ir_(body.ir),
        b_(body.ir.b),
        s_(plan.shape),
        held_(plan.held),
        at_(plan.shape.in.size()) {}

  void Emit() {
    const int64_t features = s_.out_features();
    sums_ = ir_.Alloca(ir_.RegType(held_), features * (IsComplex(held_) ? 2 : 1));
    llvm::FastMathFlags fast;
    fast.setAllowContract();
    ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* position) {
      llvm::Value* image = position;
      for (int64_t d = s_.spatial() - 1; d >= 0; --d) {
        at_[d] = b_.CreateURem(image, ir_.I64(s_.out[d]));
        image = b_.CreateUDiv(image, ir_.I64(s_.out[d]));
      }
      b_.setFastMathFlags(fast);
      ir_.Loop(
          ir_.I64(0), ir_.I64(features), 1,
          [&](llvm::Value* f) { ir_.Store(held_, ir_.Constant(held_, Element{}), sums_, f); }, true);
      Taps(0, ir_.Mul(image, s_.image_stride), ir_.I64(0), nullptr);
      ir_.Loop(
          ir_.I64(0), ir_.I64(features), 1,
          [&](llvm::Value* f) {
            Val v = ir_.Load(held_, sums_, f);
            ir_.Store(s_.c, held_ == s_.c ? v : ir_.Convert(v, held_, s_.c), body_.results[0],
                      ir_.Add(ir_.Mul(position, features), f));
          },
          true);
      b_.setFastMathFlags({});
      if (epilogue_) epilogue_({features, position, ir_.I64(1), ir_.I64(0), ir_.I64(features)});
    });
  }

 private:
  // The window's taps from dimension `d` inwards, at element `pixel` of the input and `tap` of the kernel so far.
  void Taps(int64_t d, llvm::Value* pixel, llvm::Value* tap, llvm::Value* inside) {
    if (d == s_.spatial()) {
      if (inside)
        ir_.If(inside, [&] { AddTap(pixel, tap); });
      else
        AddTap(pixel, tap);
      return;
    }
    const WindowDim& w = s_.window[d];
    ir_.Loop(ir_.I64(0), ir_.I64(w.size), 1, [&](llvm::Value* q) {
      llvm::Value* seen =
          b_.CreateSub(ir_.Add(ir_.Mul(at_[d], w.stride), ir_.Mul(q, w.rhs_dilate)), ir_.I64(w.pad_low));
      const InputPlace place = PlaceInInput(ir_, w, s_.in[d], seen, inside);
      llvm::Value* kq = w.reversed ? b_.CreateSub(ir_.I64(w.size - 1), q) : q;
      Taps(d + 1, ir_.Add(pixel, ir_.Mul(place.position, s_.position_stride[d])), ir_.Add(ir_.Mul(tap, w.size), kq),
           place.inside);
    });
  }

  // Adds what the pixel whose features begin at `x` of the input gives to all features.
  void AddTap(llvm::Value* x, llvm::Value* tap) {
    llvm::Value* k = ir_.Mul(tap, s_.tap_stride);
    ir_.Loop(ir_.I64(0), ir_.I64(s_.cin), 1, [&](llvm::Value* ci) {
      ir_.Loop(
          ir_.I64(0), ir_.I64(s_.groups), 1,
          [&](llvm::Value* g) {
            ir_.Loop(
                ir_.I64(0), ir_.I64(s_.cout), 1, [&](llvm::Value* f) { AddProduct(x, k, ci, g, f); }, s_.cout > 1);
          },
          s_.cout == 1);
    });
  }

  void AddProduct(llvm::Value* x, llvm::Value* k, llvm::Value* ci, llvm::Value* g, llvm::Value* f) {
    llvm::Value* feature = ir_.Add(ir_.Mul(g, s_.cout), f);
    llvm::Value* from = ir_.Mul(ir_.Add(ir_.Mul(g, s_.cin), ci), s_.feature_stride);
    Val xv = ir_.Convert(ir_.Load(s_.a, body_.operands[0], ir_.Add(x, from)), s_.a, held_);
    Val kv = ir_.Convert(ir_.Load(s_.b, body_.operands[1],
                                  ir_.Add(k, ir_.Add(ir_.Mul(ci, s_.in_stride), ir_.Mul(feature, s_.out_stride)))),
                         s_.b, held_);
    ir_.Store(held_, MultiplyAdd(ir_, held_, ir_.Load(held_, sums_, feature), xv, kv), sums_, feature);
  }

  Body& body_;
  const Epilogue& epilogue_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const ConvolutionShape& s_;
  const PrimitiveType held_;
  std::vector<llvm::Value*> at_;  // the output position
  llvm::Value* sums_ = nullptr;
};

}  // namespace

void EmitDirectConvolution(Body& body, const ConvolutionPlan& plan, const Epilogue& epilogue) {
  DirectConvolution(body, plan, epilogue).Emit();
}

}  // namespace kiln::cpu
