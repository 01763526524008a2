// Search: leaves the entries that have all the words, or others of the same stem, and marks the hits.

const search = document.getElementById('search')
const found = document.getElementById('found')
const textOf = (node) => node?.textContent.toLowerCase() ?? ''

/** Returns an entry with its line, and what is searched inside it, folded parts apart. */
function read(entry) {
  const heading = entry.querySelector('summary, h2, h3')
  const inside = [
    ...entry.querySelectorAll(':scope > .inside > :is(.words, .responses), .samples > .tabs'),
  ]
  if (inside.length === 0)
    inside.push(
      entry.querySelector(':scope > :is(.inside, .pair) > .words, :scope > .inside') ?? entry,
    )
  const folded = inside.flatMap((part) => [...part.querySelectorAll('details')])
  const parts = entry.localName === 'details' ? [entry, ...folded] : folded
  const text = inside.map(textOf).join(' ')
  const texts = parts.map((part) => [part, part === entry ? text : textOf(part)])
  const names = [...entry.querySelectorAll('.words .name')].map(textOf)
  return { entry, heading, inside, names, line: textOf(heading), text, texts }
}

/** All entries, from the first search on: before that, samples have no languages to choose. */
let searched

/** Words of a question that say nothing of what is sought. */
const STOP = /^(?:an?|are|do|does|how|i|in|is|of|the|to|what|where)$/

/** What ends English words of one stem. The longest is first. */
const ENDINGS =
  'ications|ication|icating|icates|icated|icate|inations|ination|inating|inated|inates|inate|ations|ation|ating|ated|ates|ate|encies|ency|ents|ent|ings|ing|ions|ion|ies|ied|ers|er|es|ed|s|e|y'.split(
    '|',
  )
const escaped = (text) => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

/** What finds a word, wherever it stands, and whole words of its stem. */
export function patternOf(word) {
  const ending = ENDINGS.find((end) => word.endsWith(end) && word.length - end.length >= 3) ?? ''
  const stem = escaped(word.slice(0, word.length - ending.length))
  return new RegExp(`${escaped(word)}|\\b${stem}(?:${ENDINGS.join('|')})?\\b`, 'gi')
}

const has = (pattern, text) => text.search(pattern) >= 0
const hits = CSS.highlights && new Highlight()
if (hits) {
  hits.priority = 1
  CSS.highlights.set('hit', hits)
}

/** Marks what patterns find in entries; returns the first of it. */
function mark(patterns, entries) {
  hits?.clear()
  const ranges = []
  for (const { heading, inside } of entries) {
    for (const part of new Set([heading, ...inside])) {
      const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT)
      while (walker.nextNode()) {
        const node = walker.currentNode
        for (const pattern of patterns) {
          for (const { 0: text, index } of node.data.matchAll(pattern)) {
            const range = new Range()
            range.setStart(node, index)
            range.setEnd(node, index + text.length)
            ranges.push(range)
          }
        }
      }
    }
  }
  for (const range of ranges) hits?.add(range)
  return ranges.find((range) => range.getClientRects().length > 0)
}

/** What the search has unfolded, and folds up again. */
const unfolded = new Set()
/** The entries that are found, the best first. */
let results = []
let patterns = []

/** How well an entry fits: it is about a field of this name, or its line has all the words. */
const fitOf = ({ names, line }, query) =>
  names.includes(query) ? 2 : Number(patterns.every((pattern) => has(pattern, line)))

function find() {
  const query = search.value.trim().toLowerCase()
  const words = query.split(/\s+/).filter(Boolean)
  const telling = words.filter((word) => !STOP.test(word))
  patterns = (telling.length > 0 ? telling : words).map(patternOf)
  const isOver = patterns.length === 0
  const counts = {}
  results = []
  searched ??= [...document.querySelectorAll('[data-entry]')].map(read)
  for (const item of searched) {
    const { entry, line, text, texts } = item
    entry.hidden = !patterns.every((pattern) => has(pattern, `${line} ${text}`))
    if (!entry.hidden && !isOver) {
      results.push(item)
      counts[entry.dataset.entry] = (counts[entry.dataset.entry] ?? 0) + 1
    }
    for (const [part, content] of texts) {
      const isHit = patterns.some((pattern) => !has(pattern, line) && has(pattern, content))
      if (isHit && !entry.hidden && !part.open) {
        part.open = true
        unfolded.add(part)
      } else if (!isHit && unfolded.delete(part)) part.open = false
    }
  }
  for (const part of document.querySelectorAll('main > :not(h1, #found, [data-entry])')) {
    part.hidden = !isOver && !part.querySelector('[data-entry]:not([hidden])')
  }
  const list = Object.entries(counts).map(([kind, n]) => `${n} ${kind}${n === 1 ? '' : 's'}`)
  found.textContent = isOver ? '' : `Found: ${list.join(', ') || 'nothing'}`
  results.sort((one, other) => fitOf(other, query) - fitOf(one, query))
  const first = mark(patterns, results)
  if (first) show(first)
}

/** Scrolls to a hit that is out of sight. */
function show(range) {
  const { top, bottom } = range.getBoundingClientRect()
  if (top < 80 || bottom > innerHeight)
    range.startContainer.parentElement.scrollIntoView({ block: 'center' })
}

/** Ends the search, which shows the whole page again, without marks. */
export function endSearch() {
  hits?.clear()
  if (search.value === '') return
  search.value = ''
  find()
}

/** Keeps an entry unfolded when the search is over. */
export const keep = (entry) => unfolded.delete(entry)

/** Ends the search at the entry that fits best, with its hits marked. */
function jump() {
  const [best] = results
  if (!best) return
  const { entry, heading } = best
  const sought = patterns
  for (const part of [entry, ...entry.querySelectorAll('details')]) keep(part)
  endSearch()
  if (entry.localName === 'details') entry.open = true
  history.pushState(null, '', `#${entry.id || heading.id}`)
  entry.scrollIntoView()
  if (heading.localName !== 'summary') heading.tabIndex = -1
  heading.focus({ preventScroll: true })
  mark(sought, [best])
}

search.addEventListener('input', find)
search.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter') return
  event.preventDefault() // or it would fold up what it leads to
  jump()
})
addEventListener('keydown', (event) => {
  const isTyping = event.target.matches?.(
    'input:not([type=radio], [type=checkbox]), select, textarea',
  )
  const isAsked =
    (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey) ||
    (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey))
  if (!isAsked) return
  event.preventDefault()
  search.focus()
  search.select()
})
search.closest('search').hidden = false
