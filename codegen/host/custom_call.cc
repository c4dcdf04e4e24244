#include "codegen/host/custom_call.h"

namespace kiln {
namespace {

llvm::Constant* Global(Ir& ir, llvm::Constant* init, const char* name) {
  auto* g = new llvm::GlobalVariable(ir.module, init->getType(), true, llvm::GlobalValue::PrivateLinkage, init, name);
  g->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return g;
}

llvm::Constant* Text(Ir& ir, const std::string& s) {
  return Global(ir, llvm::ConstantDataArray::getString(ir.ctx, s), "text");
}

llvm::Constant* Scalar(Ir& ir, PrimitiveType t, const Element& e) {
  if (t == PrimitiveType::F32) return llvm::ConstantFP::get(ir.b.getFloatTy(), e.re);
  if (t == PrimitiveType::F64) return llvm::ConstantFP::get(ir.b.getDoubleTy(), e.re);
  return llvm::ConstantInt::get(ir.b.getIntNTy(static_cast<unsigned>(8 * ByteWidth(t))), static_cast<uint64_t>(e.i),
                                true);
}

// The struct that the header declares: fields by name; a string or a list is a pointer and a size.
llvm::Constant* AttributesStruct(Ir& ir, const std::vector<CallAttributeValue>& attributes) {
  if (attributes.empty()) return llvm::ConstantPointerNull::get(ir.b.getPtrTy());
  std::vector<llvm::Constant*> fields;
  for (const CallAttributeValue& a : attributes) {
    if (a.text) {
      fields.push_back(Text(ir, a.string));
      fields.push_back(ir.b.getInt64(a.string.size()));
    } else if (a.list) {
      std::vector<llvm::Constant*> values;
      for (const Element& e : a.values) values.push_back(Scalar(ir, a.type, e));
      llvm::Type* type = Scalar(ir, a.type, {})->getType();
      fields.push_back(Global(ir, llvm::ConstantArray::get(llvm::ArrayType::get(type, values.size()), values), "list"));
      fields.push_back(ir.b.getInt64(values.size()));
    } else {
      fields.push_back(Scalar(ir, a.type, a.values[0]));
    }
  }
  return Global(ir, llvm::ConstantStruct::getAnon(ir.ctx, fields), "attributes");
}

// An array of NAME_buffer: {data, dims, rank, type}.
llvm::Value* Buffers(Ir& ir, const std::vector<CallBuffer>& list) {
  llvm::IRBuilder<>& b = ir.b;
  llvm::Type* type = llvm::StructType::get(ir.ctx, {b.getPtrTy(), b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty()});
  llvm::Value* table = ir.Alloca(type, std::max<int64_t>(static_cast<int64_t>(list.size()), 1), 16);
  for (size_t k = 0; k < list.size(); ++k) {
    const Shape& s = list[k].shape;
    llvm::Constant* dims = Global(ir, llvm::ConstantDataArray::get(ir.ctx, llvm::ArrayRef<int64_t>(s.dims())), "dims");
    llvm::Value* at = b.CreateInBoundsGEP(type, table, ir.I64(static_cast<int64_t>(k)));
    b.CreateStore(list[k].data, b.CreateStructGEP(type, at, 0));
    b.CreateStore(dims, b.CreateStructGEP(type, at, 1));
    b.CreateStore(b.getInt32(static_cast<uint32_t>(s.rank())), b.CreateStructGEP(type, at, 2));
    b.CreateStore(b.getInt32(static_cast<uint32_t>(InfoOf(s.type()).proto)), b.CreateStructGEP(type, at, 3));
  }
  return table;
}

}  // namespace

llvm::Value* EmitCustomCall(Ir& ir, const CustomCallSignature& signature, const std::vector<CallBuffer>& operands,
                            const std::vector<CallBuffer>& results, bool tuple_result, llvm::Value* ins,
                            llvm::Value* outs) {
  llvm::IRBuilder<>& b = ir.b;
  llvm::Type *ptr = b.getPtrTy(), *i64 = b.getInt64Ty(), *nothing = b.getVoidTy();
  auto call = [&](llvm::Type* result, std::vector<llvm::Type*> types, std::vector<llvm::Value*> values) {
    return b.CreateCall(ir.module.getOrInsertFunction(signature.target, llvm::FunctionType::get(result, types, false)),
                        values);
  };
  if (signature.api == ApiVersion::API_VERSION_TYPED_FFI)
    return call(b.getInt32Ty(), {ptr, ptr, ptr},
                {Buffers(ir, operands), Buffers(ir, results), AttributesStruct(ir, signature.attributes)});
  llvm::Value* out = tuple_result || results.empty() ? outs : b.CreateLoad(ptr, outs);
  if (signature.api == ApiVersion::API_VERSION_ORIGINAL) {
    call(nothing, {ptr, ptr}, {out, ins});
    return nullptr;
  }
  // NAME_call_status: {code, message, message_size}, which the function fills if it fails.
  llvm::Type* status_type = llvm::StructType::get(ir.ctx, {b.getInt32Ty(), ptr, i64});
  llvm::Value* status = ir.Alloca(status_type, 1, 16);
  b.CreateStore(llvm::Constant::getNullValue(status_type), status);
  if (signature.api == ApiVersion::API_VERSION_STATUS_RETURNING)
    call(nothing, {ptr, ptr, ptr}, {out, ins, status});
  else
    call(nothing, {ptr, ptr, ptr, i64, ptr},
         {out, ins, Text(ir, signature.opaque), b.getInt64(signature.opaque.size()), status});
  return b.CreateLoad(b.getInt32Ty(), status);
}

}  // namespace kiln
