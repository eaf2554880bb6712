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

// clause is where the filter of a question begins: the word `where` outside of brackets and quotes.
function clause(text) {
  let depth = 0,
    quote = '';
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quote) {
      if (c === '\\') i++;
      else if (c === quote) quote = '';
    } else if ('"\'`'.includes(c)) quote = c;
    else if ('([{'.includes(c)) depth++;
    else if (')]}'.includes(c)) depth--;
    else if (depth === 0 && /^where\b/.test(text.slice(i)) && (i === 0 || /\s/.test(text[i - 1]))) return i;
  }
  return -1;
}

// parse splits a question into groups and filter; at is where the filter begins.
export function parse(text) {
  const i = clause(text);
  if (i < 0) return { by: text.trim(), filter: '', at: text.length };
  const rest = text.slice(i + 5);
  return { by: text.slice(0, i).trim(), filter: rest.trim(), at: i + 5 + rest.length - rest.trimStart().length };
}
const join = (by, filter) => by + (filter ? ' where ' + filter : '');

// What a filter may name, besides the functions of expressions.
const properties =
  'type package loader array kind length size age birth space spacetype spacemode thread confidence site'.split(' ');

// complete gives the texts that continue what was typed: the last word is completed.
function complete(text, list) {
  const { filter, at } = parse(text);
  const inFilter = clause(text) >= 0;
  const head = inFilter
    ? text.slice(0, at) + filter.replace(/[\w]*$/, '')
    : text.replace(/[^,]*$/, t => /^\s*/.exec(t)[0]);
  const word = text.slice(head.length).toLowerCase();
  const names = inFilter ? properties : list.map(d => d.name);
  const out = names.filter(n => n.startsWith(word) && n !== word).map(n => head + n);
  if (!inFilter && word && names.includes(word)) out.push(text.trimEnd() + ' where ', text.trimEnd() + ', ');
  return out;
}

// ask makes the query bar: groups, and after the word `where` a filter. It changes the address.
export function ask(params, list, def = defaultBy) {
  const view = state().view;
  const by = params.get('by') || def,
    filter = params.get('filter') || '',
    parts = split(by);
  const put = (by, filter) =>
    go(view, { by: by === def || !by ? null : by, filter: filter || null, open: null, zoom: null, part: null });
  const set = p => put(p.join(', '), filter);
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
  const offers = h('datalist', { id: 'offers' });
  const offer = e =>
    offers.replaceChildren(...complete(e.target.value, list).map(value => h('option', { value })));
  return [
    h(
      'form',
      {
        class: 'bar',
        submit: e => {
          e.preventDefault();
          const q = parse(e.target.elements.query.value);
          put(q.by, q.filter);
        },
      },
      h('label', { for: 'query' }, 'Group by'),
      h('input', {
        id: 'query',
        name: 'query',
        class: 'grow',
        value: join(by, filter),
        spellcheck: 'false',
        autocomplete: 'off',
        list: 'offers',
        placeholder: 'type, site where size >= 1024',
        title: 'What to group by, outermost first. After “where”, a condition.',
        'aria-describedby': 'query-error',
        input: offer,
        focus: offer,
      }),
      offers,
      h('button', { type: 'submit' }, 'Apply'),
    ),
    h('div', { id: 'query-error', class: 'error', role: 'alert' }),
    h(
      'details',
      { class: 'advanced', open: params.get('more') ? true : null },
      h('summary', {}, 'Grouping levels'),
      h('div', { class: 'bar' }, chips, add),
    ),
  ];
}

// showFieldError shows an error of the query bar below it, or clears it. It returns false if the bar did not cause the
// error.
export function showFieldError(e) {
  const box = document.getElementById('query-error'),
    input = document.getElementById('query');
  const here = e && e.field;
  if (box)
    box.textContent = here ? `${e.error}\n${e.spec ?? ''}\n${' '.repeat(Math.max((e.column || 1) - 1, 0))}^` : '';
  if (input) here ? input.setAttribute('aria-invalid', 'true') : input.removeAttribute('aria-invalid');
  if (here && e.column && input) {
    const at = e.column - 1 + (e.field === 'where' ? parse(input.value).at : 0);
    input.focus();
    input.setSelectionRange(at, at);
  }
  return Boolean(here);
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
