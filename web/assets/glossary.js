// Glossary: the terms of docs/glossary.md (go generate ./web writes them to glossary.json), and the page's keys.
import { h } from './lib.js';

const keys = [
  ['1 to 9', 'Open a view, in the order of the links at the top of the page.'],
  ['/', 'Move the focus to the search field, in a view that has one.'],
  ['Tab', 'Move the focus to the next chart, table, field or button.'],
  ['← →', 'In a chart: select the previous or next collection. In a table of groups: close or open a group.'],
  ['Shift + ← →', 'In a chart: extend the selection to a range.'],
  ['Page Up, Page Down', 'In a chart: move the selection by 20 collections.'],
  ['Home, End', 'In a chart: select the first or last collection. In a table of groups: go to the first or last row.'],
  ['↑ ↓', 'In a table of groups: go to the previous or next row.'],
  ['Enter', 'In a table of groups or a flame graph: zoom into the group. In the diff’s table: open or close it.'],
  ['← → ↑ ↓', 'In a flame graph: go to the node beside, above or below.'],
  ['s', 'In a flame graph: show callers and callees of the frame.'],
  ['Escape', 'In a flame graph: show the whole heap.'],
  ['+, −, 0', 'In a chart: zoom in, zoom out, show all.'],
];

export async function show(main) {
  const r = await fetch('glossary.json');
  if (!r.ok) throw new Error('The glossary cannot be loaded from the viewer.');
  const { terms } = await r.json();
  main.append(
    h('h2', {}, 'Glossary'),
    table('terms', 'Term', terms.map(t => [code(t.term), code(t.meaning)])),
    h('h3', {}, 'Keyboard'),
    table('keys', 'Key', keys),
  );
}

// code makes elements of the parts of a text that are in backticks.
const code = text => text.split('`').map((part, i) => (i % 2 ? h('code', {}, part) : part));

function table(id, first, rows) {
  return h(
    'table',
    { class: 'words', id },
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, first), h('th', { scope: 'col' }, 'Meaning'))),
    h('tbody', {}, rows.map(([a, b]) => h('tr', {}, h('th', { scope: 'row' }, a), h('td', {}, b)))),
  );
}

// update: other parameters of the address, such as the time zone, change nothing here.
export const update = () => {};
