/* bench_flight.c - what the flight recorder costs: processor time of the loop's thread and of its
 * own, for the records of one admission (a call, its answer, its end), one at a time and in bursts.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "flight/flight.h"
#include "grpc/grpc.h"
#include "loop/loop.h"

#define REQUEST_BYTES 40u
#define ANSWER_BYTES 200u

static double cpu_us(clockid_t clock)
{
    struct timespec time;

    (void)clock_gettime(clock, &time); /* cannot fail with these clocks */
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void record_admission(struct dv_grpc_observer *observer, uint64_t number)
{
    static const char bytes[ANSWER_BYTES] = "";
    struct dv_grpc_event event = {
        .kind = DV_GRPC_CALL,
        .is_sent = true,
        .name = DV_STR("example.com/gpu"),
        .path = DV_STR("/var/lib/kubelet/device-plugins/example.com_gpu.sock"),
        .connection = 3,
        .call = number,
        .method = DV_STR("/v1beta1.DevicePlugin/Allocate"),
        .timeout_ms = 60000,
        .pod_uid = DV_STR("0d9f3a34-6f6a-4b53-8a0e-2a3b1f0f8a11"),
        .container = DV_STR("main"),
        .message = {bytes, REQUEST_BYTES},
    };

    observer->event(observer, &event);
    event.kind = DV_GRPC_MESSAGE;
    event.is_sent = false;
    event.message.n = ANSWER_BYTES;
    observer->event(observer, &event);
    event.kind = DV_GRPC_END;
    event.message = (dv_str){NULL, 0};
    observer->event(observer, &event);
}

static void on_closed(void *ctx)
{
    dv_loop_stop(ctx);
}

static bool is_time(void *ctx)
{
    const uint64_t *until_ns = ctx;

    return dv_clock_now_ns(dv_clock_real()) >= *until_ns;
}

static void measure(struct dv_loop *loop, const char *dir, unsigned n, unsigned pause_us,
                    const char *what)
{
    const struct dv_flight_options options = {.dir = dv_str_from_c(dir), .about = DV_STR("bench")};
    struct dv_flight_stats stats;
    struct dv_flight *flight;
    double own_us = cpu_us(CLOCK_THREAD_CPUTIME_ID);
    double all_us = cpu_us(CLOCK_PROCESS_CPUTIME_ID);
    double loop_us = 0;
    struct dv_err err;

    flight = dv_flight_open(loop, &options, &err);
    if (!flight)
        exit(1);
    for (unsigned i = 0; i < n; i++) {
        double before_us = cpu_us(CLOCK_THREAD_CPUTIME_ID);
        uint64_t until_ns = dv_clock_now_ns(dv_clock_real()) + pause_us * 1000ull;

        record_admission(dv_flight_observer(flight), i + 1);
        loop_us += cpu_us(CLOCK_THREAD_CPUTIME_ID) - before_us;
        if (pause_us >= 1000) /* the loop, where the time that is gathered for ends */
            (void)!dv_loop_run_until(loop, is_time, &until_ns, pause_us / 1000);
        else
            (void)usleep(pause_us);
    }
    stats = dv_flight_stats(flight);
    dv_flight_close(flight, on_closed, loop);
    dv_loop_run(loop);
    own_us = cpu_us(CLOCK_THREAD_CPUTIME_ID) - own_us;
    all_us = cpu_us(CLOCK_PROCESS_CPUTIME_ID) - all_us;
    (void)printf("%-28s %10u %10.2f %10.2f %10llu\n", what, n, loop_us / n, (all_us - own_us) / n,
                 (unsigned long long)stats.n_lost_queue);
}

int main(void)
{
    char dir[] = "/tmp/dv-bench-flight-XXXXXX";
    char ring[64];
    struct dv_loop *loop;
    struct dv_err err;

    loop = dv_loop_new(dv_clock_real(), &err);
    if (!loop || !mkdtemp(dir))
        return 1;
    (void)snprintf(ring, sizeof(ring), "%s/ring", dir);
    (void)printf("Records of an admission, in us of processor time\n%-28s %10s %10s %10s %10s\n",
                 "", "admissions", "loop", "thread", "lost");
    measure(loop, ring, 20, 500000, "one every 500 ms");
    measure(loop, ring, 100, 50000, "one every 50 ms");
    measure(loop, ring, 100, 20000, "one every 20 ms");
    measure(loop, ring, 1000, 1000, "one every ms");
    measure(loop, ring, 10000, 50, "one every 0.1 ms");
    dv_loop_free(loop);
    (void)fflush(stdout);
    (void)execlp("rm", "rm", "-rf", dir, (char *)NULL);
    return 1;
}
