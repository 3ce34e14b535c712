#include "http2/header_list.h"

#include "base/vec.h"

void dv_h2_headers_init(struct dv_h2_header_list *list, size_t bytes_max, size_t fields_max)
{
    *list = (struct dv_h2_header_list){.bytes_max = bytes_max, .fields_max = fields_max};
    dv_buf_init(&list->text, bytes_max);
}

void dv_h2_headers_fini(struct dv_h2_header_list *list)
{
    dv_buf_fini(&list->text);
    dv_vec_fini(list);
}

void dv_h2_headers_reset(struct dv_h2_header_list *list)
{
    dv_buf_clear(&list->text);
    list->n = 0;
    list->bytes = 0;
    list->is_over = false;
}

void dv_h2_headers_add(struct dv_h2_header_list *list, dv_str name, dv_str value)
{
    list->bytes += name.n + value.n + DV_H2_FIELD_OVERHEAD;
    if (list->bytes > list->bytes_max || list->n >= list->fields_max)
        list->is_over = true;
    if (list->is_over)
        return;
    (void)dv_vec_add(list);
    list->v[list->n - 1].name_at = list->text.n;
    list->v[list->n - 1].name_n = name.n;
    list->v[list->n - 1].value_at = list->text.n + name.n;
    list->v[list->n - 1].value_n = value.n;
    dv_buf_add(&list->text, name);
    dv_buf_add(&list->text, value);
}

struct dv_h2_field dv_h2_headers_at(const struct dv_h2_header_list *list, size_t i)
{
    dv_str text = dv_buf_str(&list->text);

    return (struct dv_h2_field){
        dv_str_slice(text, list->v[i].name_at, list->v[i].name_at + list->v[i].name_n),
        dv_str_slice(text, list->v[i].value_at, list->v[i].value_at + list->v[i].value_n),
    };
}
