// A tree table with keyboard control, and an icicle of the same tree.
import { h, count } from './lib.js';

// TreeTable shows nodes { key, …, count, children }. columns are { title, cell(node, root), numeric }. more(path,
// skip) returns the node with further children. open is the set of open paths (JSON); the caller owns it. changed is
// called when the set has changed, enter(path) when the reader presses Enter.
export class TreeTable {
  constructor(parent, { columns, open, changed, enter, more, label, rowClass }) {
    Object.assign(this, { columns, open, changed, enter, more, rowClass });
    this.body = h('tbody', {});
    this.table = h(
      'table',
      { class: 'tree', role: 'treegrid', 'aria-label': label, keydown: e => this.key(e) },
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          h('th', { scope: 'col' }, 'Group'),
          columns.map(c => h('th', { scope: 'col', class: c.numeric ? 'n' : null }, c.title)),
        ),
      ),
      this.body,
    );
    parent.append(h('div', { class: 'scroll' }, this.table));
  }

  show(root, base = [], expanded = false) {
    Object.assign(this, { root, base, expanded });
    this.render();
  }

  isOpen(path) {
    return this.expanded ? !this.open.has('-' + JSON.stringify(path)) : this.open.has(JSON.stringify(path));
  }

  render(focus) {
    const rows = [];
    const walk = (node, path, level) => {
      const kids = node.children || [];
      kids.forEach((c, i) => {
        const p = [...path, c.key];
        rows.push(this.row(c, p, level, i + 1, node.count));
        if ((c.count || (c.children || []).length) && this.isOpen(p)) {
          if (!c.children && !c.loading) this.load(c, p);
          walk(c, p, level + 1);
        }
      });
      if (kids.length && node.count > kids.length && !this.expanded) rows.push(this.rest(node, path, level));
    };
    walk(this.root, this.base, 1);
    if (!rows.length)
      rows.push(h('tr', {}, h('td', { colspan: this.columns.length + 1, class: 'quiet' }, 'No groups.')));
    this.body.replaceChildren(...rows);
    const to = focus && rows.find(r => r.dataset.path === focus);
    const first = to || rows[0];
    first.tabIndex = 0;
    if (to) to.focus();
  }

  row(node, path, level, at, of) {
    const id = JSON.stringify(path);
    const kids = node.count > 0;
    const open = kids && this.isOpen(path);
    return h(
      'tr',
      {
        'aria-level': level,
        'aria-posinset': at,
        'aria-setsize': of || at,
        'aria-expanded': kids ? String(open) : null,
        tabindex: '-1',
        'data-path': id,
        class: this.rowClass?.(node),
      },
      h(
        'td',
        { role: 'gridcell', class: 'name', title: node.key },
        h(
          'span',
          { class: 'name', indent: (level - 1) * 18 + 'px' },
          h(
            'button',
            {
              type: 'button',
              class: 'twist',
              tabindex: '-1',
              'aria-hidden': 'true',
              click: () => this.toggle(path, id),
            },
            kids ? (open ? '▼' : '▶') : '',
          ),
          h('span', {}, node.key),
        ),
      ),
      this.columns.map(c => h('td', { role: 'gridcell', class: c.numeric ? 'n' : null }, c.cell(node, this.root))),
    );
  }

  rest(node, path, level) {
    const left = node.count - node.children.length;
    return h(
      'tr',
      { 'aria-level': level, tabindex: '-1', 'data-path': 'rest' + JSON.stringify(path), 'data-rest': '1' },
      h(
        'td',
        { colspan: this.columns.length + 1, role: 'gridcell' },
        h(
          'button',
          { type: 'button', click: () => this.load(node, path) },
          `Show more: ${count(left)} of ${count(node.count)} groups are not shown`,
        ),
      ),
    );
  }

  async load(node, path) {
    node.loading = true;
    const have = node.children?.length || 0;
    try {
      const n = await this.more(path, have);
      node.children = [...(node.children || []), ...(n.children || [])];
      if (!n.children?.length) node.count = node.children.length;
    } finally {
      node.loading = false;
    }
    this.render(document.activeElement?.dataset?.path);
  }

  toggle(path, id) {
    const k = (this.expanded ? '-' : '') + id;
    this.open.has(k) ? this.open.delete(k) : this.open.add(k);
    this.render(id);
    this.changed?.();
  }

  key(e) {
    const tr = e.target.closest('tr[data-path]');
    if (!tr || (e.target.tagName === 'BUTTON' && (e.key === 'Enter' || e.key === ' '))) return;
    const move = to => {
      if (to?.dataset?.path) {
        tr.tabIndex = -1;
        to.tabIndex = 0;
        to.focus();
        to.scrollIntoView({ block: 'nearest' });
      }
    };
    const id = tr.dataset.path,
      path = id.startsWith('[') ? JSON.parse(id) : null;
    const open = tr.getAttribute('aria-expanded');
    switch (e.key) {
      case 'ArrowDown':
        move(tr.nextElementSibling);
        break;
      case 'ArrowUp':
        move(tr.previousElementSibling);
        break;
      case 'Home':
        move(this.body.firstElementChild);
        break;
      case 'End':
        move(this.body.lastElementChild);
        break;
      case 'ArrowRight':
        if (open === 'false') this.toggle(path, id);
        else move(tr.nextElementSibling);
        break;
      case 'ArrowLeft': {
        if (open === 'true') {
          this.toggle(path, id);
          break;
        }
        const level = +tr.getAttribute('aria-level');
        let up = tr.previousElementSibling;
        while (up && +up.getAttribute('aria-level') >= level) up = up.previousElementSibling;
        move(up);
        break;
      }
      case 'Enter':
      case ' ':
        if (tr.dataset.rest) tr.querySelector('button').click();
        else if (e.key === 'Enter' && this.enter) this.enter(path);
        else if (open) this.toggle(path, id);
        break;
      default:
        return;
    }
    e.preventDefault();
  }
}

const palette = ['#56b4e9', '#e69f00', '#7ccfb4', '#f0e442', '#e8a4c9', '#f29a6c', '#9db8e0', '#c9c9c9'];
function tint(key) {
  let n = 0;
  for (const c of key) n = (n * 31 + c.codePointAt(0)) >>> 0;
  return palette[n % palette.length];
}

// icicle draws a tree with the root on top. A click or Enter on a node calls pick(path). hit says which keys to mark.
export function icicle(root, { pick, size = n => n.bytes, text, hit, base = [], label }) {
  const W = 1000,
    H = 20,
    min = 1.2;
  const depth = n => 1 + Math.max(0, ...(n.children || []).map(depth));
  const levels = Math.min(depth(root), 40);
  const out = [],
    words = []; // apart from the buttons, whose accessible name must not be the shortened text
  const draw = (n, path, x, w, y) => {
    const description = text(n),
      name = n.key;
    const chars = Math.floor(w / 7);
    out.push(
      h(
        'g',
        {
          class: hit?.(n.key) ? 'hit' : null,
          tabindex: y ? '0' : null,
          role: 'button',
          'aria-label': description,
          click: () => pick(path),
          keydown: e => {
            if (e.key === 'Enter' || e.key === ' ') {
              e.preventDefault();
              pick(path);
            }
          },
        },
        h('title', {}, description),
        h('rect', { x, y: y * H, width: Math.max(w, 0.5), height: H - 1, fill: y ? tint(n.key) : '#b9bec5' }),
      ),
    );
    if (chars > 3)
      words.push(
        h('text', { x: x + 4, y: y * H + 14 }, name.length > chars ? '…' + name.slice(-(chars - 1)) : name),
      );
    if (y + 1 >= levels) return;
    let at = x;
    const total = Math.max(size(n), 1);
    const sum = Math.max(
      (n.children || []).reduce((s, c) => s + size(c), 0),
      total,
    );
    for (const c of n.children || []) {
      const cw = (w * size(c)) / sum;
      if (cw >= min) draw(c, [...path, c.key], at, cw, y + 1);
      at += cw;
    }
  };
  draw(root, base, 0, W, 0);
  return h(
    'svg',
    {
      class: 'icicle',
      viewBox: `0 0 ${W} ${levels * H}`,
      role: 'group',
      'aria-label': label,
      xmlns: 'http://www.w3.org/2000/svg',
    },
    out,
    h('g', { 'aria-hidden': 'true' }, words),
  );
}
