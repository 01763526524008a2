// Blocks of code: their colours, a button that copies, and another that shows all of what is long.

// https://developer.mozilla.org/docs/Web/API/CSS_Custom_Highlight_API; older browsers show no colours.
const colours = {}
if (CSS.highlights) {
  for (const kind of ['field', 'text', 'number', 'word', 'note']) {
    colours[kind] = new Highlight()
    CSS.highlights.set(kind, colours[kind])
  }
}

// Close to the syntax of all languages here. A text is first, for it may hold any of the others.
const words =
  'as|async|await|console|const|curl|except|export|false|from|function|if|import|let|new|null|return|true|try|while|with'
const TOKEN = new RegExp(
  [
    '(?<text>"(?:[^"\\\\\\n]|\\\\.)*"|\'(?:[^\'\\\\]|\\\\.)*\'|`[^`]*`)',
    '(?<note>\\/\\/.*|(?<![^\\s])# .*)',
    '(?<number>(?<![\\w-])-?\\d[\\w.]*)',
    `(?<word>\\b(?:${words})\\b|(?<=\\s)--?[A-Za-z][\\w-]*)`,
  ].join('|'),
  'gm',
)

/** The ranges that are coloured in a block. */
const painted = new WeakMap()

function paint(pre) {
  for (const [colour, range] of painted.get(pre) ?? []) colour.delete(range)
  const node = pre.firstChild
  const ranges = []
  for (const { 0: token, index, groups } of node?.data.matchAll(TOKEN) ?? []) {
    const end = index + token.length
    const [kind] = Object.entries(groups).find(([, text]) => text !== undefined)
    const isField = kind === 'text' && /^\s*:/.test(node.data.slice(end, end + 3))
    const colour = colours[isField ? 'field' : kind]
    const place = { startContainer: node, startOffset: index, endContainer: node, endOffset: end }
    if (colour) ranges.push([colour, new StaticRange(place)])
  }
  for (const [colour, range] of ranges) colour.add(range)
  painted.set(pre, ranges)
}

/** How many lines of a block are shown at first. */
const MAX_LINES = 24
/** About as many characters are in a line. */
const WIDTH = 60

function countLines(text) {
  return text
    .split('\n')
    .reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / WIDTH)), 0)
}

/** Offers to show all of what is too long for a block. */
function fold(pre) {
  const block = pre.parentElement
  block.querySelector('.more')?.remove()
  const lines = countLines(pre.textContent)
  block.classList.toggle('long', lines > MAX_LINES)
  if (lines <= MAX_LINES) return
  const more = button('more', 'Show all')
  more.ariaExpanded = 'false'
  more.addEventListener('click', () => {
    const isLong = block.classList.toggle('long')
    more.textContent = isLong ? 'Show all' : 'Show less'
    more.ariaExpanded = String(!isLong)
    if (isLong) block.scrollIntoView({ block: 'nearest' })
  })
  block.append(more)
}

/** Puts text into a block. */
export function write(pre, text) {
  pre.textContent = text
  paint(pre)
  fold(pre)
}

function button(name, text) {
  const made = document.createElement('button')
  Object.assign(made, { type: 'button', className: name, textContent: text })
  return made
}

function addCopy(block) {
  const copy = button('copy', 'Copy')
  copy.ariaLive = 'polite'
  copy.addEventListener('click', async () => {
    const text = block.querySelector('pre').textContent
    const copied = navigator.clipboard?.writeText(text) ?? Promise.reject()
    copy.textContent = await copied.then(
      () => 'Copied',
      () => 'The browser refuses: select and copy',
    )
    setTimeout(() => {
      copy.textContent = 'Copy'
    }, 2_000)
  })
  block.querySelector('.bar').append(copy)
}

for (const block of document.querySelectorAll('.block')) {
  addCopy(block)
  write(block.querySelector('pre'), block.querySelector('pre').textContent)
}
