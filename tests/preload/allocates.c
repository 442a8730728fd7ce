/* A process whose allocations are known: for each byte it reads it does what the byte says and writes the byte back. */
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
    char order;
    void *volatile memory = NULL;
    void *aligned;
    while (read(0, &order, 1) == 1) {
        switch (order) {
        case 'm': memory = malloc(10); break;
        case 'c': memory = calloc(5, 4); break;
        case 'r': memory = realloc(memory, 30); break;
        case 'a': memory = memalign(64, 128); break;
        case 'l': memory = aligned_alloc(64, 128); break;
        case 'p': memory = posix_memalign(&aligned, 64, 50) ? NULL : aligned; break;
        case 'v': memory = valloc(60); break;
        default: break;
        }
        if (write(1, &order, 1) != 1)
            return 1;
    }
    return memory == NULL;
}
