// The data of one run, as folds.Fold.data in Python makes it, with the lookups that views need.

// Columns of differences become columns of values.
function unpacked(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  if (Array.isArray(value.deltas)) {
    let sum = 0;
    return value.deltas.map((by) => (sum += by));
  }
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, unpacked(one)]));
}

export class Run {
  constructor(data, index) {
    Object.assign(this, unpacked(data));
    this.index = index;
    this.podCount = this.pods ? this.pods.name.length : 0;
  }

  text(index) {
    return this.strings[index] ?? "";
  }

  podName(index) {
    return index < 0 ? "" : this.text(this.pods.name[index]);
  }

  nodeName(index) {
    return index < 0 ? "" : this.nodes.names[index];
  }

  actorName(index) {
    return this.actors[index] ?? "";
  }

  // With the name of its class, if it has one: "high (1000)".
  priority(value) {
    const name = this.classes?.[value];
    return name ? `${name} (${value})` : String(value);
  }

  link(view, argument = "") {
    return `#/${this.index}/${view}${argument === "" ? "" : `/${argument}`}`;
  }

  trace(pod) {
    return this.pods.trace[0].slice(32 * pod, 32 * pod + 32);
  }

  // Where an event stands in the columns of events; -1: the page does not have it.
  eventRow(place) {
    const places = this.events.place;
    let low = 0;
    let high = places.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (places[middle] === place) return middle;
      if (places[middle] < place) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  podsWhere(test) {
    const found = [];
    for (let pod = 0; pod < this.podCount; pod++) if (test(pod)) found.push(pod);
    return found;
  }
}

// The indices of a table whose columns are arrays.
export function rowsOf(column, test = () => true) {
  const found = [];
  for (let row = 0; row < column.length; row++) if (test(row)) found.push(row);
  return found;
}

export function seconds(micros, digits = 3) {
  return micros === undefined || micros < 0 ? "never" : `${(micros / 1e6).toFixed(digits)} s`;
}

export function lasting(micros) {
  if (micros >= 1e6) return `${(micros / 1e6).toPrecision(3)} s`;
  return micros >= 1000 ? `${(micros / 1000).toPrecision(3)} ms` : `${micros} µs`;
}

// As people say it: 3 min 20 s.
export function duration(micros) {
  if (micros < 99.95e6 && micros !== 60e6) return micros ? lasting(micros) : "0 s";
  const whole = Math.round(micros / 1e6);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  if (hours) return minutes ? `${hours} h ${minutes} min` : `${hours} h`;
  return rest ? `${minutes} min ${rest} s` : `${minutes} min`;
}

export function counted(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

export function cores(milli) {
  return `${milli / 1000} CPU${milli === 1000 ? "" : "s"}`;
}

export function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return `${Number(count.toPrecision(3))} ${units[unit]}`;
}
