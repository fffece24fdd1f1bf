"""A pipeline whose functions are written in plain Python: parse, repair, drop, pad, and train."""

import numpy as np

import opdock as tf

LONGEST = 6

rng = np.random.RandomState(1)
with open("numbers.csv", "w") as lines:
    for _ in range(200):
        values = rng.randint(-9, 10, rng.randint(1, 12))
        written = [str(v) if rng.rand() > 0.1 else "?" for v in values]
        lines.write(",".join(written) + "\n")


def number(text):
    if tf.equal(text, "?"):
        return tf.constant(0.0)
    return tf.strings.to_number(text)


def parse(line):
    """The numbers of a line, at most six: once two in a row are negative, no more."""
    texts = tf.strings.split([line], ",").values
    found = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    count = 0
    before = tf.constant(0.0)
    for text in texts:
        value = number(text)
        if value < 0.0 and before < 0.0:
            break
        before = value
        if tf.equal(value, 0.0):
            continue
        found = found.write(count, value)
        count += 1
        if count >= LONGEST:
            break
    numbers = found.stack()
    numbers.set_shape([None])
    return numbers


def label(numbers):
    total = tf.constant(0.0)
    i = 0
    while i < tf.size(numbers) and total < 10.0:
        total += numbers[i] if numbers[i] > 0.0 else tf.constant(0.0)
        i += 1
    return {"x": numbers, "n": tf.size(numbers), "y": tf.cast(total >= 10.0, tf.float32)}


data = tf.data.TextLineDataset("numbers.csv").map(parse)
data = data.filter(lambda numbers: tf.size(numbers) > 1 and not tf.reduce_max(numbers) < 0.0)
data = data.map(label)
batches = data.repeat().padded_batch(20, {"x": [LONGEST], "n": [], "y": []})
element = tf.data.make_one_shot_iterator(batches).get_next()
once = tf.data.make_one_shot_iterator(data).get_next()

weights = tf.Variable(tf.zeros([LONGEST]))
bias = tf.Variable(0.0)
logits = tf.reduce_sum(tf.nn.relu(element["x"]) * weights, axis=1) + bias
loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=element["y"], logits=logits))
step = tf.train.GradientDescentOptimizer(0.05).minimize(loss)

losses, rows = [], []
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(120):
        losses.append(session.run([loss, step])[0])
    while True:
        try:
            rows.append(session.run(once))
        except tf.errors.OutOfRangeError:
            break
print("Lines kept:", len(rows))


def expected():
    """The same by Python alone."""
    found = []
    with open("numbers.csv") as written:
        lines = list(written)
    for line in lines:
        numbers, before = [], 0.0
        for text in line.strip().split(","):
            value = 0.0 if text == "?" else float(text)
            if value < 0 and before < 0:
                break
            before = value
            if value == 0:
                continue
            numbers.append(value)
            if len(numbers) >= LONGEST:
                break
        if len(numbers) > 1 and max(numbers) >= 0:
            found.append((numbers, float(sum(max(v, 0.0) for v in numbers) >= 10)))
    return found


right = [(row["x"].tolist(), float(row["y"])) for row in rows] == expected()
