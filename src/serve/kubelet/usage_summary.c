/* usage_summary.c - what is used, as the reference's Summary (JSON, /stats/summary). What is not
 * known is left out. */
#include "base/buf.h"
#include "base/calendar.h"
#include "base/str.h"
#include "serve/kubelet/usage.h"

#define NS_PER_S 1000000000

/* An object that is being printed. */
struct object {
    struct dv_buf *buf;
    bool has_member;
};

static struct object begin(struct dv_buf *buf)
{
    dv_buf_add_char(buf, '{');
    return (struct object){.buf = buf};
}

static void end(struct object *object)
{
    dv_buf_add_char(object->buf, '}');
}

static void add_key(struct object *object, const char *key)
{
    dv_buf_printf(object->buf, "%s\"%s\":", object->has_member ? "," : "", key);
    object->has_member = true;
}

static void add_text(struct object *object, const char *key, dv_str text)
{
    add_key(object, key);
    dv_buf_add_json(object->buf, text);
}

static void add_time(struct object *object, const char *key, int64_t ns)
{
    char text[DV_RFC3339_BYTES];
    size_t n;

    if (ns <= 0)
        return;
    n = dv_rfc3339_print((struct dv_rfc3339){.seconds = ns / NS_PER_S}, 0, text);
    add_text(object, key, (dv_str){text, n});
}

static void add_number(struct object *object, const char *key, struct dv_usage_number number)
{
    if (!number.is_known)
        return;
    add_key(object, key);
    dv_buf_add_u64(object->buf, number.value);
}

static void add_usage(struct object *object, const struct dv_usage *usage)
{
    struct object part;

    if (usage->cpu_ns.is_known) {
        add_key(object, "cpu");
        part = begin(object->buf);
        add_time(&part, "time", usage->cpu_at_ns);
        add_number(&part, "usageNanoCores", usage->nano_cores);
        add_number(&part, "usageCoreNanoSeconds", usage->cpu_ns);
        end(&part);
    }
    if (usage->working_set.is_known) {
        add_key(object, "memory");
        part = begin(object->buf);
        add_time(&part, "time", usage->memory_at_ns);
        add_number(&part, "availableBytes", usage->available);
        add_number(&part, "usageBytes", usage->in_use);
        add_number(&part, "workingSetBytes", usage->working_set);
        add_number(&part, "rssBytes", usage->rss);
        add_number(&part, "pageFaults", usage->page_faults);
        add_number(&part, "majorPageFaults", usage->major_page_faults);
        end(&part);
    }
}

static void add_container(const struct dv_usage_container *container, bool has_disks,
                          struct dv_buf *buf)
{
    struct object object = begin(buf);

    add_text(&object, "name", container->name);
    add_time(&object, "startTime", container->started_ns);
    add_usage(&object, &container->usage);
    if (has_disks && container->disk_bytes.is_known) {
        struct object disk;

        add_key(&object, "rootfs");
        disk = begin(buf);
        add_time(&disk, "time", container->disk_at_ns);
        add_number(&disk, "usedBytes", container->disk_bytes);
        add_number(&disk, "inodesUsed", container->disk_inodes);
        end(&disk);
    }
    end(&object);
}

static void add_pod(const struct dv_usage_pod *pod, bool has_disks, struct dv_buf *buf)
{
    struct object object = begin(buf);
    struct object ref;

    add_key(&object, "podRef");
    ref = begin(buf);
    add_text(&ref, "name", pod->name);
    add_text(&ref, "namespace", pod->namespace);
    add_text(&ref, "uid", pod->uid);
    end(&ref);
    add_time(&object, "startTime", pod->started_ns);
    add_key(&object, "containers");
    dv_buf_add_char(buf, '[');
    for (size_t i = 0; i < pod->n_containers; i++) {
        if (i > 0)
            dv_buf_add_char(buf, ',');
        add_container(&pod->containers[i], has_disks, buf);
    }
    dv_buf_add_char(buf, ']');
    add_usage(&object, &pod->usage);
    end(&object);
}

void dv_usage_print_summary(const struct dv_usage_report *report, bool has_disks,
                            struct dv_buf *buf)
{
    struct object summary = begin(buf);
    struct object node;

    add_key(&summary, "node");
    node = begin(buf);
    add_text(&node, "nodeName", report->node_name);
    add_time(&node, "startTime", report->node_started_ns);
    add_usage(&node, &report->node);
    end(&node);
    add_key(&summary, "pods");
    dv_buf_add_char(buf, '[');
    for (size_t i = 0; i < report->n_pods; i++) {
        if (i > 0)
            dv_buf_add_char(buf, ',');
        add_pod(&report->pods[i], has_disks, buf);
    }
    dv_buf_add_char(buf, ']');
    end(&summary);
    dv_buf_add_char(buf, '\n');
}
