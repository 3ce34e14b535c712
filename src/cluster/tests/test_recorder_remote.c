/* What the recorder of Events sends to a real API server, byte by byte. */
#include "support/dvtest.h"

#include <string.h>

#include "base/buf.h"
#include "cluster/recorder.h"
#include "cluster/remote.h"
#include "cluster/tests/test_remote.h"

static const struct dv_note_subject pod = {DV_STR_INIT("Pod"), DV_STR_INIT("v1"), DV_STR_INIT("s"),
                                           DV_STR_INIT("p"),   DV_STR_INIT("u"),  DV_STR_INIT("")};

static void note(struct fake *fake, struct dv_recorder *recorder)
{
    fake_reply(fake, OBJECT("p.1", "ue", "7"));
    dv_recorder_note(recorder, &pod, true, DV_STR("Failed"), DV_STR("it broke"));
}

static void counts_with_what_has_changed_and_nothing_else(void **state)
{
    struct fake *fake = *state;
    struct dv_recorder *recorder;

    fake_connect(fake);
    recorder = dv_recorder_open(dv_remote_cluster(fake->remote), DV_STR("tester"), DV_STR("n1"));
    note(fake, recorder);
    fake_expect(fake, "POST /api/v1/namespaces/s/events?fieldManager=tester application/json: "
                      "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p.");
    note(fake, recorder);
    fake_wait(fake, &fake->n_asked, 2);
    assert_non_null(
        strstr(dv_buf_c(&fake->asked), "application/merge-patch+json: {\"lastTimestamp\":\""));
    assert_non_null(strstr(dv_buf_c(&fake->asked), "\",\"count\":2}\n"));
    assert_null(strstr(dv_buf_c(&fake->asked), "null"));
    assert_null(strstr(dv_buf_c(&fake->asked), "firstTimestamp"));
    assert_null(strstr(dv_buf_c(&fake->asked), "reporting"));
    fake_expect(fake, "PATCH /api/v1/namespaces/s/events/p.");
    fake_settle(fake);
    dv_recorder_close(recorder, NULL, NULL);
    fake_settle(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts_with_what_has_changed_and_nothing_else, fake_start,
                                        fake_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
