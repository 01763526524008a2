// Gives the page life: forms that send what they show, and colours of code. Nothing is sent anywhere
// but to the server that the page is from, whatever its public address is.

/** Milliseconds after which a request without an answer has failed: longer than the service takes for any. */
const TIMEOUT = 40_000

const base = new URL(document.body.dataset.api, location.href).href

// --- The contents: folded up on a phone.

const contents = document.querySelector('nav details')
const isWide = matchMedia('(width >= 64rem)')
const fitContents = () => {
  contents.open = isWide.matches
}
isWide.addEventListener('change', fitContents)
contents.addEventListener('click', ({ target }) => {
  if (target.closest('a')) fitContents()
})
fitContents()

// --- Code: its colours, and a button that copies.

// Close to the syntax of all languages here. A text is first, for it may hold any of the others.
const TOKEN = new RegExp(
  [
    '(?<field>"[^"\\n]*"(?=\\s*:))',
    '(?<text>"(?:[^"\\\\\\n]|\\\\.)*"|\'(?:[^\'\\\\]|\\\\.)*\'|`[^`]*`)',
    '(?<note>\\/\\/.*|(?<!\\S)# .*)',
    '(?<number>(?<![\\w-])-?\\d[\\w.]*)',
    '(?<word>\\b(?:as|await|const|curl|except|from|if|import|let|new|null|throw|true|try|while|with)\\b)',
  ].join('|'),
  'g',
)

/** Writes text into a block, with its tokens in colours. */
function write(pre, text) {
  let end = 0
  pre.textContent = ''
  for (const { 0: token, index, groups } of text.matchAll(TOKEN)) {
    const piece = document.createElement('span')
    piece.className = Object.keys(groups).find((kind) => groups[kind] !== undefined)
    piece.textContent = token
    pre.append(text.slice(end, index), piece)
    end = index + token.length
  }
  pre.append(text.slice(end))
}

for (const block of document.querySelectorAll('.block')) {
  const pre = block.querySelector('pre')
  write(pre, pre.textContent)
  if (!navigator.clipboard) continue // as on a page without HTTPS
  const copy = document.createElement('button')
  Object.assign(copy, { type: 'button', textContent: 'Copy', ariaLive: 'polite' })
  copy.addEventListener('click', async () => {
    copy.textContent = await navigator.clipboard.writeText(pre.textContent).then(
      () => 'Copied',
      () => 'The browser refuses: select and copy',
    )
  })
  block.querySelector('.bar').append(copy)
}

// --- The API key: one for all forms, kept for the tab where the reader wants that.

const STORED = 'docs-page-api-key'
const keyField = document.getElementById('key')
const keepField = document.getElementById('keep')

/** What the browser keeps for the tab, or nothing where it keeps nothing. */
function stored(change) {
  try {
    return change(sessionStorage) ?? ''
  } catch {
    return ''
  }
}

keyField.value = stored((storage) => storage.getItem(STORED))
keepField.checked = keyField.value !== ''
keyField.form.addEventListener('input', () => {
  const isKept = keepField.checked && keyField.value !== ''
  stored((storage) =>
    isKept ? storage.setItem(STORED, keyField.value) : storage.removeItem(STORED),
  )
})
keyField.form.addEventListener('submit', (event) => event.preventDefault())
keyField.form.hidden = false

// --- Forms.

/** The request that a form describes, without what is left empty. */
function requestOf(form) {
  const filled = (place) =>
    [...form.querySelectorAll(`[data-in=${place}]`)]
      .filter(({ value }) => value !== '')
      .map(({ name, value }) => [name, value])
  const { method, path } = form.dataset
  const url = filled('path').reduce(
    (url, [name, value]) => url.replace(`{${name}}`, encodeURIComponent(value)),
    base + path,
  )
  const query = new URLSearchParams(filled('query')).toString()
  const headers = filled('header')
  const key = keyField.value.trim()
  if (key !== '') headers.push(['Authorization', `Bearer ${key}`])
  if (form.elements.body) headers.push(['Content-Type', 'application/json'])
  const signal = AbortSignal.timeout(TIMEOUT)
  return [
    url + (query && `?${query}`),
    { method, headers, body: form.elements.body?.value, signal },
  ]
}

/** JSON on several lines, each number with the digits it came with; anything else as it came. */
function pretty(text) {
  if (!JSON.rawJSON) return text
  try {
    const exact = (_key, value, { source }) =>
      typeof value === 'number' ? JSON.rawJSON(source) : value
    return JSON.stringify(JSON.parse(text, exact), null, 2)
  } catch {
    return text
  }
}

async function send(form) {
  const submit = form.querySelector('[type=submit]')
  if (submit.ariaBusy === 'true') return // a second click must not add a second thing
  const state = form.querySelector('[role=status]')
  const result = state.nextElementSibling
  const [content, headers] = result.querySelectorAll('pre')
  result.hidden = true
  // A pasted key may bring a character with it that shows nothing, which the browser would not send.
  if (/[^!-~]/.test(keyField.value.trim())) {
    state.className = 's4'
    state.textContent = 'The API key has a character that is not part of any key'
    return
  }
  submit.ariaBusy = 'true'
  state.className = ''
  state.textContent = 'Sending …'
  try {
    const response = await fetch(...requestOf(form))
    write(content, pretty(await response.text()))
    write(headers, [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n'))
    result.hidden = false
    state.className = `s${String(response.status)[0]}`
    state.textContent = `${response.status} ${response.statusText}`
  } catch (error) {
    state.className = 's5'
    state.textContent = `There was no answer: ${error.message}`
  }
  submit.ariaBusy = 'false'
  state.scrollIntoView({ block: 'nearest' })
}

for (const form of document.querySelectorAll('.trial')) {
  form.hidden = false
  form.querySelector('.target').textContent = base
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    send(form)
  })
}
