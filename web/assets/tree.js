// A tree table with keyboard control.
import { h, count, parts, share } from './lib.js';

// callersDrawn explains the mark of a group whose objects have callers that were drawn.
const callersDrawn = 'The innermost frame is exact. The callers are as in live samples that end there. The ' +
  'percentage is the share of the objects with this frame.';

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
          h('span', {}, parts(node.key)),
          node.callers_drawn
            ? h('span', { class: 'sub drawn', title: callersDrawn }, ` callers drawn: ${share(node.callers_share)}`)
            : null,
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
