// The fields that several views share: collection, classifiers and filter; and the errors of these fields.
import { h, go, get, state, count } from './lib.js';

let docs = null; // the answer of api/classifiers
export const classifiers = async () => (docs ??= await get('classifiers'));

export const defaultBy = 'type, site';
export const byOf = params => params.get('by') || defaultBy;

// split cuts a list at the commas that are outside brackets and quotes.
export function split(spec) {
  const out = [];
  let depth = 0,
    quote = '',
    at = 0;
  for (let i = 0; i < spec.length; i++) {
    const c = spec[i];
    if (quote) {
      if (c === '\\') i++;
      else if (c === quote) quote = '';
    } else if ('"\'`'.includes(c)) quote = c;
    else if ('([{'.includes(c)) depth++;
    else if (')]}'.includes(c)) depth--;
    else if (c === ',' && depth === 0) {
      out.push(spec.slice(at, i).trim());
      at = i + 1;
    }
  }
  out.push(spec.slice(at).trim());
  return out.filter(Boolean);
}

// ask makes the fields for classifiers and filter. They change the address.
export function ask(params, list, def = defaultBy) {
  const view = state().view;
  const by = params.get('by') || def,
    parts = split(by);
  const set = p => go(view, { by: p.join(', ') === def ? null : p.join(', '), open: null, zoom: null });
  const move = (i, d) => {
    const p = [...parts];
    [p[i], p[i + d]] = [p[i + d], p[i]];
    set(p);
  };
  const chips = h(
    'ul',
    { class: 'chips', 'aria-label': 'Grouping levels, outermost first' },
    parts.map((p, i) =>
      h(
        'li',
        {},
        h('span', {}, p),
        h(
          'button',
          { type: 'button', 'aria-label': `move ${p} one level out`, disabled: i === 0, click: () => move(i, -1) },
          '◀',
        ),
        h(
          'button',
          {
            type: 'button',
            'aria-label': `move ${p} one level in`,
            disabled: i === parts.length - 1,
            click: () => move(i, 1),
          },
          '▶',
        ),
        h(
          'button',
          {
            type: 'button',
            'aria-label': `remove ${p}`,
            disabled: parts.length === 1,
            click: () => set(parts.filter((_, j) => j !== i)),
          },
          '×',
        ),
      ),
    ),
  );
  const add = h(
    'select',
    {
      'aria-label': 'Add a grouping level',
      id: 'add',
      change: e => {
        if (e.target.value) set([...parts, e.target.value]);
      },
    },
    h('option', { value: '' }, 'Add level …'),
    list.map(d => h('option', { value: d.name, title: d.description }, d.name)),
  );
  const field = (id, label, value, key, what) =>
    h(
      'form',
      {
        class: 'bar grow',
        submit: e => {
          e.preventDefault();
          go(view, { [key]: e.target.elements[id].value.trim() || null, open: null, zoom: null });
        },
      },
      h('label', { for: id }, label),
      h('input', {
        id,
        name: id,
        class: 'grow',
        value,
        spellcheck: 'false',
        autocomplete: 'off',
        placeholder: what,
        'aria-describedby': id + '-error',
      }),
      h('button', { type: 'submit' }, 'Apply'),
    );
  return [
    h(
      'div',
      { class: 'bar' },
      chips,
      add,
      field('by', 'Group by', by, 'by', def),
      field('where', 'Filter', params.get('filter') || '', 'filter', 'size >= 1024 and type startsWith "java."'),
    ),
    h('div', { id: 'by-error', class: 'error', role: 'alert' }),
    h('div', { id: 'where-error', class: 'error', role: 'alert' }),
  ];
}

// showFieldError shows an error below the field that caused it, and clears the others. It returns false if no field
// caused the error.
export function showFieldError(e) {
  for (const f of ['by', 'where']) {
    const box = document.getElementById(f + '-error'),
      input = document.getElementById(f);
    const here = e && e.field === f;
    if (box)
      box.textContent = here ? `${e.error}\n${e.spec ?? ''}\n${' '.repeat(Math.max((e.column || 1) - 1, 0))}^` : '';
    if (input) here ? input.setAttribute('aria-invalid', 'true') : input.removeAttribute('aria-invalid');
    if (here && e.column) {
      input.focus();
      input.setSelectionRange(e.column - 1, e.column - 1);
    }
  }
  return Boolean(e && e.field);
}

// gcField is the field that selects a collection; rows are the report's collections.
export function gcField(rows, value, label, set, id) {
  const known = rows.filter(c => c.known);
  const i = known.findIndex(c => String(c.gc) === String(value));
  const step = (d, t, name) =>
    h('button', { type: 'button', 'aria-label': name, disabled: !known[i + d], click: () => set(known[i + d].gc) }, t);
  return h(
    'form',
    {
      class: 'bar',
      submit: e => {
        e.preventDefault();
        set(e.target.elements[id].value.trim());
      },
    },
    h('label', { for: id }, label),
    step(-1, '◀', 'previous collection'),
    h('input', { id, name: id, value: String(value ?? ''), size: '9', list: 'refs', autocomplete: 'off' }),
    step(1, '▶', 'next collection'),
    h(
      'datalist',
      { id: 'refs' },
      ['first', 'last', 'peak'].map(r => h('option', { value: r })),
    ),
  );
}

// lastKnown is the collection that is shown by default: the last one whose heap state is known.
export const lastKnown = rows => rows.findLast(c => c.known)?.gc;
export const name = g => `collection ${count(g.gc)} (GC(${g.jvm_gc}) in the JVM’s log)`;
