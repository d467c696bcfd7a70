// Shallow declarations of the C++ library for host code: enough for launch code to have types, not enough to run.
#pragma once
#include "porter_runtime.h"
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
#define CLOCKS_PER_SEC 1000000L
#define PRIu64 "lu"
#define PRId64 "ld"
#define errno (*__errno_location())
typedef struct _IO_FILE FILE;
extern FILE *stdout, *stderr, *stdin;
int* __errno_location(); int fprintf(FILE*, const char*, ...); int snprintf(char*, size_t, const char*, ...); int sprintf(char*, const char*, ...);
int fflush(FILE*); FILE* fopen(const char*, const char*); int fclose(FILE*); size_t fread(void*, size_t, size_t, FILE*); size_t fwrite(const void*, size_t, size_t, FILE*);
int fseek(FILE*, long, int); long ftell(FILE*); int puts(const char*); int feof(FILE*); int ferror(FILE*); int close(int); long write(int, const void*, size_t); long read(int, void*, size_t); int tolower(int); int toupper(int); int isspace(int); long long atoll(const char*); int usleep(unsigned); int rand(); void srand(unsigned); [[noreturn]] void exit(int); [[noreturn]] void abort();
int atoi(const char*); double atof(const char*); long strtol(const char*, char**, int); char* getenv(const char*); time_t time(time_t*); void* calloc(size_t, size_t);
void* realloc(void*, size_t); int memcmp(const void*, const void*, size_t); int strncmp(const char*, const char*, size_t); char* strcpy(char*, const char*); char* strerror(int);
struct timespec { long tv_sec; long tv_nsec; }; int clock_gettime(int, timespec*); void perror(const char*);
#define CLOCK_MONOTONIC 1
namespace std {
using ::rand; using ::srand; using ::exit; using ::abort; using ::fprintf; using ::snprintf; using ::sprintf; using ::getenv; using ::atoi; using ::FILE; using ::memcmp; using ::time; using ::fopen; using ::fclose; using ::fread; using ::fwrite; using ::fflush; using ::strncmp; using ::tolower; using ::toupper; using ::atoll; using ::isspace;
struct random_access_iterator_tag {}; struct forward_iterator_tag {}; struct input_iterator_tag {}; struct output_iterator_tag {}; struct bidirectional_iterator_tag {};
template <class I> struct iterator_traits { using value_type = typename I::value_type; using difference_type = ptrdiff_t; using reference = value_type&; using pointer = value_type*; };
template <class T> struct iterator_traits<T*> { using value_type = remove_cv_t<T>; using difference_type = ptrdiff_t; using reference = T&; using pointer = T*; using iterator_category = random_access_iterator_tag; };
template <class I> ptrdiff_t distance(I, I); template <class I> I next(I, ptrdiff_t = 1); template <class I> I prev(I, ptrdiff_t = 1); template <class I, class N> void advance(I&, N);
template <class I, class O, class F> O transform(I, I, O, F); template <class I, class J, class O, class F> O transform(I, I, J, O, F); template <class I, class F> F for_each(I, I, F);
template <class T> struct allocator { using value_type = T; };
template <class C> struct char_traits {};
struct string_view;
struct string {
  static constexpr size_t npos = ~size_t(0);
  string(); string(const char*); string(const char*, size_t); string(size_t, char); string(const string&); explicit string(const string_view&); template <class I, class = enable_if_t<!is_integral_v<I>>> string(I, I); string(initializer_list<char>); string& operator=(const string&); ~string();
  const char* c_str() const; const char* data() const; size_t size() const; size_t length() const; bool empty() const; char& operator[](size_t); char operator[](size_t) const;
  string& operator+=(const string&); string& operator+=(char); string& append(const string&); string substr(size_t, size_t = npos) const; size_t find(const string&, size_t = 0) const; size_t find(char, size_t = 0) const; size_t rfind(const string&) const;
  char* begin(); char* end(); const char* begin() const; const char* end() const; void clear(); void resize(size_t); void reserve(size_t); void push_back(char); void swap(string&); string& insert(size_t, const string&); string& erase(size_t = 0, size_t = npos); string& assign(const string&); size_t find_first_of(const string&, size_t = 0) const; size_t find_last_of(const string&) const; size_t capacity() const; int compare(const string&) const; char back() const; char front() const;
};
struct string_view { string_view(); string_view(const char*); string_view(const char*, size_t); string_view(const string&); const char* data() const; size_t size() const; const char* begin() const; const char* end() const; bool empty() const; size_t find(const string_view&) const; string_view substr(size_t, size_t = ~size_t(0)) const; };
string operator+(const string&, const string&); string operator+(const string&, char); bool operator==(const string&, const string&); bool operator!=(const string&, const string&); bool operator<(const string&, const string&); bool operator==(const string_view&, const string_view&);
template <class T> string to_string(T); int stoi(const string&); long stol(const string&); unsigned long long stoull(const string&); float stof(const string&); double stod(const string&);
struct ostream { template <class T> ostream& operator<<(const T&); ostream& operator<<(ostream& (*)(ostream&)); ostream& flush(); ostream& write(const char*, size_t); };
struct istream { template <class T> istream& operator>>(T&); explicit operator bool() const; istream& read(char*, size_t); };
struct stringstream : ostream { stringstream(); explicit stringstream(const string&); string str() const; template <class T> stringstream& operator>>(T&); };
struct ostringstream : ostream { string str() const; }; struct istringstream : istream { istringstream(const string&); }; struct ofstream : ostream { ofstream(const string&); void close(); bool is_open() const; }; struct ifstream : istream { ifstream(const string&); void close(); bool is_open() const; };
extern ostream cout, cerr, clog; extern istream cin; ostream& endl(ostream&); ostream& flush(ostream&); ostream& fixed(ostream&); ostream& hex(ostream&); ostream& dec(ostream&); ostream& boolalpha(ostream&); int setprecision(int); int setw(int); char setfill(char); istream& getline(istream&, string&);
struct exception { exception(); virtual ~exception(); virtual const char* what() const noexcept; };
#define PORTER_EXCEPTION(name, base) struct name : base { name(const string&); name(const char*); };
struct bad_alloc : exception {}; PORTER_EXCEPTION(logic_error, exception) PORTER_EXCEPTION(runtime_error, exception) PORTER_EXCEPTION(invalid_argument, logic_error) PORTER_EXCEPTION(out_of_range, logic_error) PORTER_EXCEPTION(domain_error, logic_error) PORTER_EXCEPTION(overflow_error, runtime_error) PORTER_EXCEPTION(underflow_error, runtime_error) PORTER_EXCEPTION(range_error, runtime_error) PORTER_EXCEPTION(length_error, logic_error)
#undef PORTER_EXCEPTION
[[noreturn]] void terminate();
template <class T, class A = allocator<T>> struct vector {
  using value_type = T; using iterator = T*; using const_iterator = const T*; using size_type = size_t; using reference = T&;
  vector(); explicit vector(size_t); vector(size_t, const T&); vector(initializer_list<T>); template <class I, class = enable_if_t<!is_integral_v<I>>> vector(I, I); vector(const vector&); vector& operator=(const vector&); ~vector();
  T& operator[](size_t); const T& operator[](size_t) const; T& at(size_t); const T& at(size_t) const; T* data(); const T* data() const; size_t size() const; bool empty() const; size_t capacity() const;
  T* begin(); T* end(); const T* begin() const; const T* end() const; T& back(); const T& back() const; T& front(); const T& front() const; void push_back(const T&); template <class... U> T& emplace_back(U&&...); void pop_back(); void resize(size_t); void resize(size_t, const T&); void reserve(size_t); void clear();
  T* insert(const T*, const T&); template <class I> T* insert(const T*, I, I); T* erase(const T*); T* erase(const T*, const T*); void assign(size_t, const T&); void swap(vector&);
};
template <class T> struct deque : vector<T> { void push_front(const T&); void pop_front(); }; template <class T> struct list : deque<T> {}; template <class T> struct queue { void push(const T&); void pop(); T& front(); bool empty() const; size_t size() const; };
#define PORTER_MAP(name)                                                                                                                                    \
  template <class K, class V, class... O> struct name { using value_type = pair<const K, V>; using iterator = value_type*; using const_iterator = const value_type*; name(); name(initializer_list<value_type>); V& operator[](const K&); V& at(const K&); const V& at(const K&) const; value_type* find(const K&); const value_type* find(const K&) const; \
    value_type* begin(); value_type* end(); const value_type* begin() const; const value_type* end() const; size_t count(const K&) const; size_t size() const; bool empty() const; template <class... U> pair<value_type*, bool> emplace(U&&...); pair<value_type*, bool> insert(const value_type&); void erase(const K&); void clear(); };
PORTER_MAP(map) PORTER_MAP(unordered_map)
#undef PORTER_MAP
template <class K, class... O> struct set { set(); set(initializer_list<K>); size_t count(const K&) const; pair<const K*, bool> insert(const K&); const K* begin() const; const K* end() const; const K* find(const K&) const; size_t size() const; }; template <class K, class... O> struct unordered_set : set<K> {};
struct nullopt_t { constexpr explicit nullopt_t(int) {} }; inline constexpr nullopt_t nullopt{0};
template <class T> struct optional {
  using value_type = T; alignas(T) unsigned char _s[sizeof(T)]; bool _has; optional(); optional(nullopt_t); template <class U = T, class = enable_if_t<is_convertible_v<U&&, T>>> optional(U&& v); optional& operator=(nullopt_t);
  bool has_value() const; explicit operator bool() const; T& value(); const T& value() const; T& operator*(); const T& operator*() const; T* operator->(); const T* operator->() const; template <class U> T value_or(U&& d) const; void reset(); template <class... A> T& emplace(A&&...);
};
template <class T> bool operator==(const optional<T>&, nullopt_t); template <class T> bool operator!=(const optional<T>&, nullopt_t); template <class T> optional<decay_t<T>> make_optional(T&&);
template <class T> struct default_delete { void operator()(T*) const; };
template <class T, class D = default_delete<T>> struct unique_ptr { unique_ptr(); explicit unique_ptr(T*); unique_ptr(nullptr_t); unique_ptr(T*, D); unique_ptr(unique_ptr&&); unique_ptr& operator=(unique_ptr&&); ~unique_ptr(); T* get() const; T& operator*() const; T* operator->() const; T* release(); void reset(T* = nullptr); explicit operator bool() const; };
template <class T, class D> struct unique_ptr<T[], D> { unique_ptr(); explicit unique_ptr(T*); T* get() const; T& operator[](size_t) const; };
template <class T> struct shared_ptr { shared_ptr(); explicit shared_ptr(T*); shared_ptr(nullptr_t); template <class U> shared_ptr(const shared_ptr<U>&); T* get() const; T& operator*() const; T* operator->() const; void reset(T* = nullptr); explicit operator bool() const; long use_count() const; };
template <class T, class... A> shared_ptr<T> make_shared(A&&...); template <class T, class... A> unique_ptr<T> make_unique(A&&...); template <class T> struct weak_ptr { shared_ptr<T> lock() const; };
template <class F> struct function; template <class R, class... A> struct function<R(A...)> { function(); function(nullptr_t); template <class F> function(F); R operator()(A...) const; explicit operator bool() const; }; template <class T> struct reference_wrapper { T& get() const; operator T&() const; }; template <class T> reference_wrapper<T> ref(T&);
template <class F, class... A> function<void()> bind(F&&, A&&...);
template <class... T> struct variant { variant(); template <class U> variant(U&&); size_t index() const; }; template <class T, class... U> T& get(variant<U...>&); template <class T, class... U> bool holds_alternative(const variant<U...>&); template <class F, class V> auto visit(F&&, V&&);
struct mutex { void lock(); void unlock(); }; struct recursive_mutex : mutex {}; struct once_flag {}; template <class F, class... A> void call_once(once_flag&, F&&, A&&...); template <class M> struct lock_guard { explicit lock_guard(M&); }; template <class M> lock_guard(M&) -> lock_guard<M>; template <class M> struct unique_lock { explicit unique_lock(M&); void unlock(); }; template <class... M> struct scoped_lock { explicit scoped_lock(M&...); };
struct thread { thread(); template <class F, class... A> explicit thread(F&&, A&&...); void join(); static unsigned hardware_concurrency(); };
template <class T> struct atomic { atomic(); atomic(T); T load(memory_order = memory_order_seq_cst) const; void store(T, memory_order = memory_order_seq_cst); T fetch_add(T, memory_order = memory_order_seq_cst); operator T() const; T operator++(); T operator=(T); T exchange(T); bool compare_exchange_strong(T&, T); };
struct mt19937 { using result_type = unsigned; explicit mt19937(unsigned = 5489u); unsigned operator()(); void seed(unsigned); static constexpr unsigned min() { return 0; } static constexpr unsigned max() { return ~0u; } }; using mt19937_64 = mt19937; using default_random_engine = mt19937; struct random_device { unsigned operator()(); };
template <class T = double> struct uniform_real_distribution { uniform_real_distribution(T = 0, T = 1); template <class G> T operator()(G&); }; template <class T = int> struct uniform_int_distribution { uniform_int_distribution(T = 0, T = 100); template <class G> T operator()(G&); }; template <class T = double> struct normal_distribution { normal_distribution(T = 0, T = 1); template <class G> T operator()(G&); };
#pragma clang force_cuda_host_device begin
template <class T> struct complex { T _re, _im; constexpr complex(T re = T(), T im = T()) : _re(re), _im(im) {} constexpr T real() const { return _re; } constexpr T imag() const { return _im; } };
#pragma clang force_cuda_host_device end
template <class T> struct span { span(); span(T*, size_t); template <class C> span(C&); T* data() const; size_t size() const; T& operator[](size_t) const; T* begin() const; T* end() const; };
template <intmax_t N, intmax_t D = 1> struct ratio {}; using milli = ratio<1, 1000>; using micro = ratio<1, 1000000>; using nano = ratio<1, 1000000000>;
namespace chrono { template <class R, class P = ratio<1>> struct duration { duration(); duration(R); R count() const; duration operator-(duration) const; }; struct time_point { duration<double> operator-(time_point) const; duration<double> time_since_epoch() const; }; struct steady_clock { using time_point = chrono::time_point; static time_point now(); }; using high_resolution_clock = steady_clock; using system_clock = steady_clock;
template <class D, class E> D duration_cast(E); using nanoseconds = duration<long, nano>; using microseconds = duration<long, micro>; using milliseconds = duration<long, milli>; using seconds = duration<long>; }
void* align(size_t, size_t, void*&, size_t&); ostream& operator<<(ostream&, const string_view&); template <class C, class T = char_traits<C>> using basic_ostream = ostream; template <class C, class T = char_traits<C>> using basic_istream = istream; template <class C, class T = char_traits<C>, class A = allocator<C>> using basic_string = string;
namespace this_thread { template <class D> void sleep_for(D); }
namespace filesystem { struct path { path(const string&); string string() const; }; bool exists(const path&); }
}  // namespace std
