/* fuzz_life.c - what happens to a pod is chosen by the input's bytes; the model says what must
 * hold. */
#include <stddef.h>
#include <stdint.h>

#include "test_life_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct byte_chooser {
    struct life_chooser chooser;
    const uint8_t *data;
    size_t n;
};

/* Without bytes left nothing special happens. */
static unsigned take_byte(struct life_chooser *chooser, unsigned sides)
{
    struct byte_chooser *own = (struct byte_chooser *)(void *)chooser;

    if (own->n == 0)
        return sides - 1;
    own->n--;
    return *own->data++ % sides;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct byte_chooser chooser = {{take_byte}, data, size};

    life_model_run(&chooser.chooser);
    return 0;
}
