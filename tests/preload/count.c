/* Counts every allocation of a process: Rust's, the C libraries' and the C library's own.
 *
 * Preloaded into the process under test. SKERRY_COUNT_FILE names a file of at least 40 bytes, made by the test, which is mapped shared
 * and can be read at any time:
 *
 *   word 0  allocations since start: malloc, calloc, realloc, memalign, posix_memalign, aligned_alloc, valloc, pvalloc
 *   word 1  bytes asked for by them
 *   word 2  written by the test: while it is not 0, each allocation prints its backtrace to the standard error
 *   word 3  1 once the shim is at work, so that a count of 0 is not a shim that was never loaded
 *   word 4  bytes that are allocated now, as the allocator rounds them
 *
 * Words are native 64-bit integers. The functions behind are glibc's own names for its allocator, so nothing has to be looked up (a look-up
 * can allocate).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void *__libc_valloc(size_t);
extern void *__libc_pvalloc(size_t);
extern void __libc_free(void *);

enum { COUNT, BYTES, TRACE, READY, LIVE, WORDS };

static uint64_t before_start[WORDS];
static uint64_t *words = before_start;

static void count(size_t bytes) {
    static __thread int inside;
    __atomic_fetch_add(&words[COUNT], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&words[BYTES], bytes, __ATOMIC_RELAXED);
    if (__atomic_load_n(&words[TRACE], __ATOMIC_RELAXED) == 0 || inside)
        return;
    inside = 1;
    void *frames[64];
    int depth = backtrace(frames, 64);
    backtrace_symbols_fd(frames, depth, STDERR_FILENO);
    (void)!write(STDERR_FILENO, "\n", 1);
    inside = 0;
}

/* Takes note of what was given; null when nothing was. */
static void *given(void *memory) {
    if (memory != NULL)
        __atomic_fetch_add(&words[LIVE], malloc_usable_size(memory), __ATOMIC_RELAXED);
    return memory;
}

static void taken_back(void *memory) {
    if (memory != NULL)
        __atomic_fetch_sub(&words[LIVE], malloc_usable_size(memory), __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("SKERRY_COUNT_FILE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    uint64_t *shared = mmap(NULL, sizeof before_start, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (shared == MAP_FAILED)
        return;
    /* The first backtrace loads a library and allocates; not later, in the middle of a count. */
    void *frame;
    backtrace(&frame, 1);
    shared[COUNT] = before_start[COUNT];
    shared[BYTES] = before_start[BYTES];
    shared[LIVE] = before_start[LIVE];
    words = shared;
    __atomic_store_n(&shared[READY], 1, __ATOMIC_RELEASE);
}

void *malloc(size_t bytes) {
    count(bytes);
    return given(__libc_malloc(bytes));
}

void *calloc(size_t number, size_t bytes) {
    count(number * bytes);
    return given(__libc_calloc(number, bytes));
}

void *realloc(void *old, size_t bytes) {
    count(bytes);
    size_t before = old ? malloc_usable_size(old) : 0;
    void *memory = __libc_realloc(old, bytes);
    /* A failed one leaves the old as it was; one to nothing frees it. */
    if (memory != NULL || bytes == 0)
        __atomic_fetch_sub(&words[LIVE], before, __ATOMIC_RELAXED);
    return given(memory);
}

void free(void *memory) {
    taken_back(memory);
    __libc_free(memory);
}

void *memalign(size_t alignment, size_t bytes) {
    count(bytes);
    return given(__libc_memalign(alignment, bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    count(bytes);
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes) {
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0)
        return EINVAL;
    count(bytes);
    void *memory = given(__libc_memalign(alignment, bytes));
    if (memory == NULL)
        return ENOMEM;
    *out = memory;
    return 0;
}

void *valloc(size_t bytes) {
    count(bytes);
    return given(__libc_valloc(bytes));
}

void *pvalloc(size_t bytes) {
    count(bytes);
    return given(__libc_pvalloc(bytes));
}
