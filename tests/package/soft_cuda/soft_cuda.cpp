// A CUDA device that is not there, with real numbers; load.py compiles and loads this file. With
// -DKIND=MPS -DIS_MPS=1 it is the GPU of a Mac, and below CUDA reads MPS.
//
// How PyTorch finds the code of an operation. Each tensor carries a set of dispatch keys: what it
// needs (Autograd, Autocast) and where it lies (CPU, CUDA). A call goes down these keys, highest
// first, to the function that is registered for each. A build of PyTorch without CUDA has the key
// CUDA all the same, and nothing registered for it. This file fills the gap with one function for
// all operations, `on_the_host`, which lends the tensors to the CPU's kernel:
//
//     x + y, both "cuda:0"  →  Autograd (as it is)  →  CUDA: on_the_host
//                                   checks that a GPU would take the call,
//                                   relabels x and y "cpu", calls the CPU's kernel for `add`,
//                                   relabels x, y and the result "cuda:0"
//
// So the numbers are the CPU's, and all that is above, such as autograd, autocast and optimizers,
// goes as it goes on a GPU. The memory is the host's, and nothing is copied.
//
// What is refused is what CUDA refuses: tensors on two devices, a generator of the CPU, an index
// out of bounds, after which the device is lost. An index that lies on the CPU is refused, too:
// CUDA would take it, but wait for the GPU each time. A Mac's refuses float64, too. What is not
// here: kernels of their own (flash attention, and the Mac's), streams that run ahead, graphs,
// several GPUs, use by several threads at once.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/detail/MPSHooksInterface.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/mul.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <set>
#include <string>

namespace {
using at::Tensor;
constexpr auto TYPE = c10::DeviceType::KIND;
const c10::Device CPU(c10::DeviceType::CPU), GPU(TYPE, 0);

// --- The device: who is asked where one is, where memory comes from, which generator there is ---

// PyTorch asks the guard which GPU is the current one, and autograd which stream its work is on.
// There is one GPU and one stream, and no call returns before it is done.
struct Guard final : c10::impl::NoOpDeviceGuardImpl<TYPE> {
  c10::Device exchangeDevice(c10::Device) const override { return GPU; }
  c10::Device getDevice() const override { return GPU; }
  c10::Stream getStream(c10::Device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, GPU);
  }
};
C10_REGISTER_GUARD_IMPL(KIND, Guard)

// The CPU's memory under another label. A storage knows its allocator, which makes room when an
// operation enlarges it; so a storage that changes its label changes its allocator as well.
struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t n) override {
    auto memory = c10::GetCPUAllocator()->allocate(n);
    memory.unsafe_set_device(GPU);
    return memory;
  }
  c10::DeleterFnPtr raw_deleter() const override { return c10::GetCPUAllocator()->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t n) const override {
    default_copy_data(to, from, n);
  }
};
Allocator allocator;
REGISTER_ALLOCATOR(TYPE, &allocator)

// The CPU's random numbers, but others for the same seed, as a GPU's are: what a chapter claims
// must not hang on the draws of one device.
struct Generator final : at::CPUGeneratorImpl {
  explicit Generator(uint64_t seed) : CPUGeneratorImpl(other(seed)) { label(GPU); }
  void set_current_seed(uint64_t seed) override { CPUGeneratorImpl::set_current_seed(other(seed)); }
  static uint64_t other(uint64_t seed) { return seed ^ 0x5DEECE66D; }
  void label(c10::Device device) { device_ = device; }
};
const at::Generator& default_generator() {
  static const auto generator = at::make_generator<Generator>(c10::default_rng_seed_val);
  return generator;
}

// What the rest of PyTorch asks CUDA for by name. `hasCUDA` stays false: it promises streams.
#if IS_MPS
struct OfKind : at::MPSHooksInterface {};
#else
struct OfKind : at::CUDAHooksInterface {
  explicit OfKind(at::CUDAHooksArgs = {}) {}
  c10::Device getDeviceFromPtr(void*) const override { return GPU; }
  c10::DeviceIndex current_device() const override { return 0; }
  int getNumGPUs() const override { return 1; }
};
#endif
struct Hooks final : OfKind {
  using OfKind::OfKind;
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return default_generator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::make_generator<Generator>(c10::default_rng_seed_val);
  }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
};
#if IS_MPS
using at::MPSHooksRegistry;
using at::RegistererMPSHooksRegistry;
C10_REGISTER_CLASS(MPSHooksRegistry, MPSHooks, Hooks)
#else
using at::CUDAHooksRegistry;
using at::RegistererCUDAHooksRegistry;
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, Hooks)
#endif

// --- One call: what is lent to the CPU, and comes back however the call ends ---

void label(const c10::Storage& storage, c10::Device device) {
  auto* memory = storage.unsafeGetStorageImpl();
  memory->_mutable_data_ptr_no_checks().unsafe_set_device(device);
  memory->set_allocator(c10::GetAllocator(device.type()));
}
void label(const Tensor& tensor, c10::Device device) {
  auto* impl = tensor.unsafeGetTensorImpl();
  label(tensor.storage(), device);
  impl->set_allow_tensor_metadata_change(true);
  impl->set_storage_keep_dtype(tensor.storage());  // the same one: this reads its new label
  impl->_change_backend_component_keys(device);
}

class Loan {
 public:
  void lend(const Tensor& tensor) {
    storages_.push_back(tensor.storage());  // `set_` may give the tensor another one
    tensors_.push_back(tensor);
    label(tensor, CPU);
  }
  void lend(const c10::Storage& storage) {
    storages_.push_back(storage);
    label(storage, CPU);
  }
  void lend(const at::Generator& generator) {
    generator_ = static_cast<Generator*>(generator.unsafeGetGeneratorImpl());
    generator_->label(CPU);
  }
  ~Loan() {
    for (const auto& tensor : tensors_) label(tensor, GPU);
    for (const auto& storage : storages_) label(storage, GPU);
    if (generator_) generator_->label(GPU);
  }

 private:
  std::vector<Tensor> tensors_;
  std::vector<c10::Storage> storages_;
  Generator* generator_ = nullptr;
  at::AutoDispatchBelowADInplaceOrView below_autograd_;  // autograd has had its turn, and autocast
  c10::impl::ExcludeDispatchKeyGuard below_autocast_{c10::autocast_dispatch_keyset};
};

// Calls `use(tensor)` for the tensors of an argument or a result: one, several, or none.
template <typename Use>
void each_tensor(const c10::IValue& value, Use use) {
  if (value.isTensor() && value.toTensor().defined()) use(value.toTensor());
  if (value.isTensorList())
    for (const Tensor& tensor : value.toTensorVector()) use(tensor);
  if (value.isOptionalTensorList())
    for (const auto& tensor : value.toOptionalTensorVector())
      if (tensor && tensor->defined()) use(*tensor);
}

// --- What a GPU would refuse ---

// The operations that take a number that lies on the CPU (a tensor of no dimensions) beside tensors
// on the GPU: those that native_functions.yaml, which load.py reads, marks "device_check: NoCheck".
const std::set<std::string> takes_numbers = {
#include "takes_numbers.inc"
};

void check_on_gpu(const std::string& name, const c10::Argument& argument, const Tensor& tensor) {
  const bool is_written = argument.alias_info() && argument.alias_info()->isWrite();
  const bool is_number = tensor.dim() == 0 && !is_written && takes_numbers.count(name);
  TORCH_CHECK(tensor.device() == GPU || is_number,
              "Expected all tensors to be on the same device, but got ", argument.name(), " is on ",
              tensor.device(), ", different from other tensors on ", GPU, " (in ", name, ")");
}

// The words are MPS's own.
void check_type(const Tensor& tensor) {
  TORCH_CHECK_TYPE(!IS_MPS || tensor.scalar_type() != at::kDouble,
                   "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't "
                   "support float64. Please use float32 instead.");
}

// A GPU does not say that an index is out of bounds: it stops, and every later call fails.
bool is_lost = false;
void check_not_lost() {
  TORCH_CHECK(!is_lost, "CUDA error: device-side assert triggered (by an earlier operation)");
}
void lose(const c10::Error& error) {
  const std::string words = error.what_without_backtrace();
  is_lost = words.find("out of range in self") != words.npos ||  // an embedding's
            words.find("out of bounds") != words.npos;
  TORCH_CHECK(!is_lost, "CUDA error: device-side assert triggered: ", words);
}

// --- The one function for all operations. Its arguments lie on a stack, and so do its results ---

void on_the_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  check_not_lost();
  const auto& schema = op.schema();
  auto name = schema.name();
  if (!schema.overload_name().empty()) name += "." + schema.overload_name();
  const auto n = schema.arguments().size();
  // All checks come first: a tensor that is lent already, as the second x in x + x, is on the CPU.
  for (size_t i = 0; i < n; ++i)
    each_tensor(torch::jit::peek(*stack, i, n),
                [&](const Tensor& x) { check_on_gpu(name, schema.arguments()[i], x); });
  Loan loan;
  for (size_t i = 0; i < n; ++i) {
    auto& value = torch::jit::peek(*stack, i, n);
    each_tensor(value, [&](const Tensor& x) { if (x.device() == GPU) loan.lend(x); });
    if (value.isStorage()) loan.lend(value.toStorage());
    if (value.isDevice()) value = CPU;
    if (schema.arguments()[i].name() == "generator") {
      const auto generator = value.isNone() ? default_generator() : value.toGenerator();
      TORCH_CHECK(generator.device() == GPU,
                  "Expected a '", TYPE, "' device type for generator but found '",
                  generator.device().type(), "'");
      loan.lend(generator);
      value = generator;
    }
  }
  try {
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  } catch (const c10::Error& error) {
    lose(error);
    throw;
  }
  // A new tensor, or a view of a lent one: both are the GPU's from now on.
  for (size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i)
    each_tensor((*stack)[i], [](const Tensor& x) {
      check_type(x);
      if (x.is_cpu()) label(x, GPU);
    });
}

// --- Three exceptions ---

// A GPU adds the products of halves up in float32; the CPU's kernels for halves are slow.
void in_float32(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  std::optional<at::ScalarType> half;
  const auto n = op.schema().arguments().size();
  for (size_t i = 0; i < n; ++i) {
    auto& value = torch::jit::peek(*stack, i, n);
    if (!value.isTensor() || !at::isReducedFloatingType(value.toTensor().scalar_type())) continue;
    half = value.toTensor().scalar_type();
    value = value.toTensor().to(at::kFloat);
  }
  on_the_host(op, stack);
  if (half) stack->back() = stack->back().toTensor().to(*half);
}

// The only operation between devices, and the way from and to the GPU.
Tensor& copy(Tensor& self, const Tensor& source, bool) {
  check_not_lost();
  Loan loan;
  for (const auto& x : {self, source})
    if (x.device() == GPU) loan.lend(x);
  return self.copy_(source);
}

// It names no generator, so the CPU's kernel would draw from the CPU's. Called for 0 < p < 1 only.
std::tuple<Tensor, Tensor> dropout(const Tensor& x, double p, std::optional<bool> is_training) {
  const double kept = is_training.value_or(true) ? 1 - p : 1.0;
  const auto keep = at::full_like(x, kept).bernoulli().to(at::kBool);
  return {x * keep / kept, keep};
}

TORCH_LIBRARY_IMPL(_, KIND, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_host>());
}
TORCH_LIBRARY_IMPL(aten, KIND, m) {
  for (const auto* product : {"mm", "bmm", "addmm", "baddbmm"})
    m.impl(product, torch::CppFunction::makeFromBoxedFunction<&in_float32>());
  m.impl("copy_", copy);
  m.impl("native_dropout", dropout);
}
TORCH_LIBRARY(soft_cuda, m) {
  m.def("default_generator() -> Generator?", [] { return default_generator(); });
}
}  // namespace
