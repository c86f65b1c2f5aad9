/* Add up plain channel lines by minute, without making an array of the samples first.

   A plain line is ten digits of Unix seconds, a space, digits with or without decimals, and a line break:
   "1363564800 243\n". Text that holds anything else is declined as a whole: only channels.py handles
   signs, carriage returns, repeated stamps and broken lines. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define SECOND_DIGITS 10
/* Fifteen digits are the most that a double holds in all cases. One less, and the sum of the at most sixty
   whole numbers of a minute is exact too. */
#define MOST_DIGITS 14

static const double POWER_OF_TEN[MOST_DIGITS] = {1e0, 1e1, 1e2, 1e3,  1e4,  1e5,  1e6,
                                                 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13};

typedef struct {
    int64_t *minute;
    double *total;
    int64_t *count;
    Py_ssize_t capacity;
    int64_t first_second;
    int64_t last_second;
} Sums;

/* Append digits to a number and return what follows them. The text ends with a line break, which is no
   digit, so this stops within it. A number that is too long wraps around, and is declined by its length. */
static const unsigned char *read_digits(const unsigned char *at, uint64_t *number) {
    unsigned digit;
    while ((digit = *at - (unsigned)'0') <= 9) {
        *number = *number * 10 + digit;
        at++;
    }
    return at;
}

/* Read ten digits; return what follows them, or NULL. A loop of a known length is a quarter faster here. */
static const unsigned char *read_second(const unsigned char *at, uint64_t *number) {
    for (int n = 0; n < SECOND_DIGITS; n++) {
        unsigned digit = at[n] - (unsigned)'0';
        if (digit > 9) return NULL;
        *number = *number * 10 + digit;
    }
    return at + SECOND_DIGITS;
}

/* Read "243" or "243.25"; return what follows it, or NULL. The mantissa and the power of ten are exact, so
   their quotient is the double nearest to what is written. */
static const unsigned char *read_watts(const unsigned char *begin, double *watts) {
    uint64_t mantissa = 0;
    const unsigned char *end = read_digits(begin, &mantissa);
    Py_ssize_t digits = end - begin, decimals = 0;
    if (digits == 0) return NULL;
    if (*end == '.') {
        const unsigned char *point = end;
        end = read_digits(point + 1, &mantissa);
        decimals = end - point - 1;
        if (decimals == 0) return NULL;
    }
    if (digits + decimals > MOST_DIGITS) return NULL;
    *watts = decimals ? (double)mantissa / POWER_OF_TEN[decimals] : (double)mantissa;
    return end;
}

/* Return the number of minutes written, or -1 to decline. */
static Py_ssize_t sum_lines(const unsigned char *at, Py_ssize_t size, Sums *sums) {
    const unsigned char *end = at + size;
    Py_ssize_t minutes = 0;
    int64_t next_minute_second = 0;
    if (size == 0 || end[-1] != '\n') return -1;
    sums->last_second = -1;
    while (at < end) {
        uint64_t number = 0;
        double watts;
        at = read_second(at, &number);
        if (at == NULL || *at != ' ') return -1;
        at = read_watts(at + 1, &watts);
        if (at == NULL || *at != '\n') return -1;
        at++;
        int64_t second = (int64_t)number;
        if (second <= sums->last_second) return -1;
        if (second >= next_minute_second) {
            if (minutes == sums->capacity) return -1;
            if (minutes == 0) sums->first_second = second;
            sums->minute[minutes] = second / 60;
            sums->total[minutes] = 0.0;
            sums->count[minutes] = 0;
            next_minute_second = (second / 60 + 1) * 60;
            minutes++;
        }
        sums->total[minutes - 1] += watts;
        sums->count[minutes - 1]++;
        sums->last_second = second;
    }
    return minutes;
}

static PyObject *add_up(PyObject *module, PyObject *args) {
    Py_buffer text, minute, total, count;
    if (!PyArg_ParseTuple(args, "y*w*w*w*", &text, &minute, &total, &count)) return NULL;
    Py_ssize_t smallest = minute.len < total.len ? minute.len : total.len;
    if (count.len < smallest) smallest = count.len;
    Sums sums = {minute.buf, total.buf, count.buf, smallest / 8, 0, 0};
    Py_ssize_t minutes;
    Py_BEGIN_ALLOW_THREADS
    minutes = sum_lines(text.buf, text.len, &sums);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&text);
    PyBuffer_Release(&minute);
    PyBuffer_Release(&total);
    PyBuffer_Release(&count);
    if (minutes < 0) Py_RETURN_NONE;
    return Py_BuildValue("nLL", minutes, (long long)sums.first_second, (long long)sums.last_second);
}

static PyMethodDef METHODS[] = {
    {"add_up", add_up, METH_VARARGS,
     "Write minutes (int64), sums (float64) and counts (int64) of plain lines into three buffers.\n\n"
     "Return the number of minutes, the first second and the last, or None if the text is declined."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, .m_name = "_lines", .m_size = 0, .m_methods = METHODS};

PyMODINIT_FUNC PyInit__lines(void) { return PyModuleDef_Init(&MODULE); }
