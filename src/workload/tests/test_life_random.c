#include "support/dice.h"
#include "support/dvtest.h"
#include "test_life_model.h"

enum { N_PODS = 1000 };

struct dice_chooser {
    struct life_chooser chooser;
    struct dice dice;
};

static unsigned roll_it(struct life_chooser *chooser, unsigned sides)
{
    struct dice_chooser *own = (struct dice_chooser *)(void *)chooser;

    return roll(&own->dice, sides);
}

static void leads_any_pod_to_its_end(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= N_PODS; seed++) {
        struct dice_chooser chooser = {{roll_it}, {seed}};

        life_model_run(&chooser.chooser);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leads_any_pod_to_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
