#include "tests/gpu/fake_streams.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

namespace fake {
namespace {

std::set<Stream*> streams;
std::map<uint64_t, unsigned> handles;
uint64_t last_handle = 0;
int sticky = 0;
thread_local int thread_mode = 0;

Stream* Default() {
  static auto* s = new Stream;
  return s;
}
Stream* OfThreads() {
  static auto* s = new Stream;
  return s;
}

bool SomebodyRecords(const std::function<bool(const Stream&)>& which) {
  for (const Stream* s : streams)
    if (s->recording && which(*s)) return true;
  return OfThreads()->recording && which(*OfThreads());
}

std::shared_ptr<Point> Tail(Stream* s) {
  if (!s->queue.empty() && s->queue.back().reaches) return s->queue.back().reaches;
  auto p = std::make_shared<Point>();
  p->stream = s;
  if (s->queue.empty())
    p->reached = true;
  else
    s->queue.push_back({nullptr, nullptr, p});
  return p;
}

// The default stream and those that block wait for each other.
void AwaitImplicitly(Stream* s) {
  const auto await = [&](Stream* other) {
    if (other != s && !other->queue.empty()) s->queue.push_back({nullptr, Tail(other), nullptr});
  };
  if (s != Default()) {
    if (s->blocking) await(Default());
    return;
  }
  for (Stream* other : streams)
    if (other->blocking) await(other);
  await(OfThreads());
}

int Use(Stream* s) {
  if (s->recording) return s->spoiled ? kCaptureInvalidated : kOk;
  // The default stream would have to wait for what is only recorded.
  if (s == Default() && SomebodyRecords([](const Stream& r) { return r.blocking; })) return kCaptureImplicit;
  return kOk;
}

// In front of what is on the stream.
void PutInFront(Stream* s, const Graph& g) {
  for (auto n = g.nodes.rbegin(); n != g.nodes.rend(); ++n)
    s->queue.push_front(n->body ? Op{nullptr, nullptr, nullptr, nullptr, std::make_shared<Node>(*n)} : Op{n->work});
}

void Handles(const Graph& g, std::set<uint64_t>* out);

// What an operation makes of the stream besides: a graph is its nodes, a conditional one its body if its value says so.
void Unfold(Stream* s, const Op& op) {
  if (op.graph) {
    std::set<uint64_t> all;
    Handles(*op.graph, &all);
    for (const uint64_t h : all) handles[h] = 0;
    PutInFront(s, *op.graph);
  } else if (op.conditional && handles[op.conditional->handle]) {
    if (op.conditional->loop) s->queue.push_front({nullptr, nullptr, nullptr, nullptr, op.conditional});
    PutInFront(s, *op.conditional->body);
  }
}

// kNotYet: what comes next waits for another device, and the caller does not.
int DrainUpTo(Stream* s, const Point* until, bool wait) {
  while (!s->queue.empty() && !(until && until->reached)) {
    if (const std::shared_ptr<Point> awaits = s->queue.front().awaits; awaits && !awaits->reached) {
      if (DrainUpTo(awaits->stream, awaits.get(), wait) == kNotYet) return kNotYet;
      if (!awaits->reached && awaits->stream->queue.empty()) awaits->reached = true;  // the stream was given up
      continue;
    }
    Op op = std::move(s->queue.front());
    s->queue.pop_front();
    const int code = op.work && !sticky ? op.work() : 0;
    if (code == kNotYet) {
      s->queue.push_front(std::move(op));
      if (!wait) return kNotYet;
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      lock.lock();
      continue;
    }
    if (code) sticky = code;
    if (op.reaches && (op.graph || op.conditional)) s->queue.push_front({nullptr, nullptr, std::move(op.reaches)});
    if (!sticky) Unfold(s, op);
    if (op.reaches) op.reaches->reached = true;
  }
  return sticky;
}

void Handles(const Graph& g, std::set<uint64_t>* out) {
  for (const Node& n : g.nodes)
    if (n.body) {
      out->insert(n.handle);
      Handles(*n.body, out);
    }
}

}  // namespace

std::recursive_mutex lock;

std::shared_ptr<Graph> Copied(const Graph& g) {
  auto out = std::make_shared<Graph>(g);
  for (Node& n : out->nodes)
    if (n.body) n.body = Copied(*n.body);
  return out;
}

std::shared_ptr<Graph> Updated(const Graph& exec, const Graph& with) {
  if (exec.nodes.size() != with.nodes.size()) return nullptr;
  auto out = std::make_shared<Graph>(exec);
  for (size_t k = 0; k < exec.nodes.size(); ++k) {
    if (!exec.nodes[k].body != !with.nodes[k].body) return nullptr;
    if (!exec.nodes[k].body) {
      out->nodes[k] = with.nodes[k];
      continue;
    }
    out->nodes[k].body = Updated(*exec.nodes[k].body, *with.nodes[k].body);
    if (!out->nodes[k].body) return nullptr;
  }
  return out;
}

uint64_t NewHandle() {
  handles[++last_handle] = 0;
  return last_handle;
}

void SetHandle(uint64_t handle, unsigned value) { handles[handle] = value; }

Stream* Of(void* handle) {
  const auto number = reinterpret_cast<uintptr_t>(handle);
  return number < 2 ? Default() : number == 2 ? OfThreads() : static_cast<Stream*>(handle);
}

Stream* NewStream(bool blocking) {
  auto* s = new Stream;
  s->blocking = blocking;
  streams.insert(s);
  return s;
}

void DestroyStream(Stream* s) {
  Drain(s);
  streams.erase(s);
  delete s;
}

int Sticky() { return sticky; }
void SetSticky(int code) { sticky = code; }

void Reset() {
  sticky = 0;
  for (Stream* s : {Default(), OfThreads()}) {
    s->queue.clear();
    s->recording = nullptr;
    s->spoiled = false;
  }
}

int DoNode(Stream* s, Node node) {
  if (const int code = Use(s)) return code;
  if (s->recording) {
    s->recording->nodes.push_back(std::move(node));
    ++s->recorded;
    return kOk;
  }
  AwaitImplicitly(s);
  s->queue.push_back({std::move(node.work), nullptr, nullptr});
  return kOk;
}

int DoGraph(Stream* s, std::shared_ptr<Graph> graph) {
  if (const int code = Use(s)) return code;
  if (s->recording) return kCaptureUnsupported;
  AwaitImplicitly(s);
  s->queue.push_back({nullptr, nullptr, nullptr, std::move(graph)});
  return kOk;
}

int Do(Stream* s, std::function<int()> work) { return DoNode(s, {std::move(work), nullptr, 0, false}); }

int Drain(Stream* s) { return DrainUpTo(s, nullptr, true); }

int TryDrain(Stream* s) {
  const int code = DrainUpTo(s, nullptr, false);
  return code == kNotYet ? kNotReady : code;
}

int DrainAll() {
  const std::set<Stream*> all = streams;
  for (Stream* s : all) Drain(s);
  Drain(OfThreads());
  return Drain(Default());
}

bool SomebodyRecords() {
  return SomebodyRecords([](const Stream&) { return true; });
}

bool DeviceRecorded(int device) {
  return SomebodyRecords([&](const Stream& s) { return s.device == device; });
}

int EndJoined(Graph* g) {
  int code = kOk;
  for (Stream* s : streams) {
    if (!s->joined || s->recording != g) continue;
    if (s->awaited < s->recorded) code = kCaptureUnjoined;
    s->recording = nullptr;
    s->joined = false;
  }
  return code;
}

int Wait(Stream* s) {
  if (const int code = Use(s)) return code;
  if (!s->recording) return Drain(s);
  s->spoiled = true;
  return kCaptureUnsupported;
}

int Unsafe() {
  constexpr int kRelaxed = 2;
  if (thread_mode == kRelaxed || !SomebodyRecords([](const Stream& s) { return s.mode != kRelaxed; })) return kOk;
  for (Stream* s : streams) s->spoiled = s->spoiled || s->recording;
  return kCaptureUnsupported;
}

int ExchangeMode(int mode) {
  std::swap(mode, thread_mode);
  return mode;
}

int Record(Event* e, Stream* s) {
  if (const int code = Use(s)) return code;
  e->point = std::make_shared<Point>();
  e->point->stream = s;
  e->point->recorded_in = s->recording;
  e->point->recorded = s->recorded;
  if (s->recording) return kOk;
  AwaitImplicitly(s);
  s->queue.push_back({nullptr, nullptr, e->point});
  return kOk;
}

int Await(Stream* s, const Event& e) {
  if (const int code = Use(s)) return code;
  if (!e.point) return kOk;
  if (!s->recording && e.point->recorded_in && s != Default()) {
    s->recording = e.point->recorded_in;
    s->joined = true;
    s->spoiled = false;
    s->mode = e.point->stream->mode;
    s->recorded = s->awaited = 0;
  }
  if (s->recording && s->recording == e.point->recorded_in && e.point->stream != s)
    e.point->stream->awaited = std::max(e.point->stream->awaited, e.point->recorded);
  if (s->recording != e.point->recorded_in) {
    // Neither may the recorded wait for what is not, nor the other way round.
    if (s->recording) s->spoiled = true;
    return kCaptureIsolation;
  }
  if (s->recording) return kOk;
  AwaitImplicitly(s);
  s->queue.push_back({nullptr, e.point, nullptr});
  return kOk;
}

}  // namespace fake
