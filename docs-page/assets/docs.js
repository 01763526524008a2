// Gives the page life: forms that send what they show, and samples of the same request. Nothing is
// sent anywhere but to the server that the page is for, whatever its public address is.
import { write } from './code.js'
import { languages } from './samples.js'
import { endSearch, keep } from './search.js'

const base = new URL(document.body.dataset.api, location.href).href.replace(/\/$/, '')
const forms = [...document.querySelectorAll('form.trial')]

// --- Addresses: what a link points to, or stands in, is unfolded.

function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  for (let at = target; at; at = at.parentElement) if (at.localName === 'details') at.open = true
  target?.scrollIntoView()
}
addEventListener('hashchange', unfold)
const contents = document.querySelector('.contents')
const isWide = matchMedia('(width >= 64rem)')
for (const link of document.querySelectorAll('a[href^="#"]')) {
  // The address may be there already, with its entry folded up or hidden by the search.
  link.addEventListener('click', () => {
    endSearch()
    if (contents.contains(link) && !isWide.matches) contents.open = false
    if (link.hash === location.hash) unfold()
  })
}
for (const entry of document.querySelectorAll('details[data-entry]')) {
  entry.querySelector('summary').addEventListener('click', (event) => {
    if (!entry.open && !event.target.closest('a')) history.replaceState(null, '', `#${entry.id}`)
  })
}

// --- The navigation: folded up on a phone, and with a mark at what is read.

const fitContents = () => {
  contents.open = isWide.matches
}
isWide.addEventListener('change', fitContents)
fitContents()

const places = [...contents.querySelectorAll('a')].map((link) => [
  link,
  document.getElementById(decodeURIComponent(link.hash.slice(1))),
])
function markPlace() {
  const seen = places.filter(([, place]) => place?.getBoundingClientRect().height > 0)
  const read = seen.findLast(([, place]) => place.getBoundingClientRect().top < 120) ?? seen[0]
  for (const [link] of places) link.ariaCurrent = link === read?.[0] ? 'true' : null
}
markPlace()

// --- Code stays in view. What is higher than the screen scrolls with the page to either of its ends.

const HIGHEST = 68 // below the header
/** Each piece of code with the top at which it stays. */
const tops = new Map([...document.querySelectorAll('.stays')].map((code) => [code, HIGHEST]))
let scrolled = scrollY
function moveCode() {
  const way = scrollY - scrolled
  scrolled = scrollY
  for (const [code, before] of tops) {
    const lowest = innerHeight - code.offsetHeight - 16
    const top = Math.min(HIGHEST, Math.max(lowest, before - way))
    if (top === before) continue
    tops.set(code, top)
    code.style.setProperty('--top', `${top}px`)
  }
}

let isScrolling = false
addEventListener(
  'scroll',
  () => {
    if (isScrolling) return
    isScrolling = true
    requestAnimationFrame(() => {
      isScrolling = false
      markPlace()
      moveCode()
    })
  },
  { passive: true },
)

// --- Where forms send to.

const server = [...document.querySelectorAll('.server')].find((one) => one.textContent === base)
if (server) server.parentElement.previousElementSibling.textContent = 'This server'
document.getElementById('here').hidden = server !== undefined
for (const target of document.querySelectorAll('.target')) target.textContent = base

// --- The API key: one for all forms, kept for the tab where the reader wants that.

const STORED = 'docs-page-api-key'
const keyField = document.getElementById('key')
const keepField = document.getElementById('keep')
const writeField = document.getElementById('write')

/** What the browser keeps for the tab, or nothing where it keeps nothing. */
function stored(change = (storage) => storage.getItem(STORED)) {
  try {
    return change(sessionStorage)
  } catch {
    return null
  }
}

function onKey() {
  const { value } = keyField
  const isKept = keepField.checked && value !== ''
  stored((storage) => (isKept ? storage.setItem(STORED, value) : storage.removeItem(STORED)))
  for (const note of document.querySelectorAll('.keyed')) {
    const link = Object.assign(document.createElement('a'), {
      href: '#key',
      textContent: 'API key',
    })
    link.addEventListener('click', () => keyField.focus())
    note.replaceChildren(value ? 'With your ' : 'Without an ', link)
  }
  writeSamples()
}

// --- Forms.

/** The request that a form describes: without what is left empty, of what must be there an example. */
function callOf(form) {
  const sent = ({ value, required, placeholder }) => value || (required ? placeholder : '')
  const at = (place) =>
    [...form.querySelectorAll(`[data-in=${place}]`)]
      .map((field) => [field.name, sent(field)])
      .filter(([, value]) => value !== '')
  let path = form.dataset.path
  for (const [name, value] of at('path'))
    path = path.replace(`{${name}}`, encodeURIComponent(value))
  const query = new URLSearchParams(at('query')).toString()
  const headers = at('header')
  const body = form.querySelector('[data-in=body]')
  if (body) headers.push(['Content-Type', body.dataset.type])
  const { method, keyIn, keyName: name, keyPrefix: prefix } = form.dataset
  const key = keyIn && { in: keyIn, name, prefix }
  return { method, url: base + path + (query && `?${query}`), key, headers, body: body?.value }
}

/** A request with the reader's key in it; as it is where there is none. */
function withKey(call) {
  const { key, url, headers } = call
  const value = keyField?.value
  if (!key || !value) return call
  const others = { ...call, key: undefined }
  if (key.in === 'query') {
    const query = new URLSearchParams({ [key.name]: value })
    return { ...others, url: `${url}${url.includes('?') ? '&' : '?'}${query}` }
  }
  const secret = key.prefix === 'Basic ' ? btoa(value) : value
  return { ...others, headers: [[key.name, key.prefix + secret], ...headers] }
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
  submit.ariaBusy = 'true'
  const { method, url, headers, body } = withKey(callOf(form))
  const box = form.querySelector('.answer')
  const [text, names] = box.querySelectorAll('pre')
  const state = box.querySelector('[role=status]')
  const result = box.querySelector('.result')
  result.hidden = true
  box.dataset.kind = ''
  state.textContent = 'Sending …'
  const began = performance.now()
  try {
    const response = await fetch(url, { method, headers, body })
    const content = await response.text()
    const duration = Math.round(performance.now() - began)
    const documented = form.parentElement.querySelector(`[data-status="${response.status}"]`)
    // HTTP/2 has no words for a status.
    const words = response.statusText || documented?.querySelector('.description').textContent || ''
    const known = [...(documented?.querySelectorAll('.names code') ?? [])].map((name) =>
      name.textContent.toLowerCase(),
    )
    write(
      names,
      [...response.headers]
        .sort(([one], [other]) => known.includes(other) - known.includes(one))
        .map(([name, value]) => `${name}: ${value}`)
        .join('\n'),
    )
    write(text, pretty(content))
    text.parentElement.hidden = content === ''
    offerNext(form, response.headers.get('Link'))
    result.hidden = false
    box.dataset.kind = String(response.status)[0]
    state.textContent = `${response.status} ${words} · ${duration} ms`
  } catch (error) {
    box.dataset.kind = '5'
    state.textContent = `There was no answer: ${error.message}`
  }
  submit.ariaBusy = 'false'
  box.scrollIntoView({ block: 'nearest' })
}

/** Offers to send what `rel="next"` of a `Link` header asks for. */
function offerNext(form, link) {
  const [, next] = /<([^<>]*)>; *rel="next"/.exec(link ?? '') ?? []
  const more = form.querySelector('.next')
  more.hidden = next === undefined
  more.onclick = () => {
    for (const [name, value] of new URL(next, base).searchParams) {
      if (form.elements[name]) form.elements[name].value = value
    }
    writeSamples()
    form.querySelector('[type=submit]').focus() // this button goes
    form.requestSubmit()
  }
}

// --- Samples, in a language that is chosen for all of them.

let language = 'curl'

/** Each place of a sample: its block, its form, what the document says in other languages, its choice. */
const samples = [...document.querySelectorAll('.samples, [data-sample-of]')].map((box, index) => {
  const operation = document.getElementById(box.dataset.sampleOf) ?? box.closest('.operation')
  const given = [...operation.querySelectorAll('template')].map(({ dataset, content }) => [
    dataset.language,
    () => content.textContent,
  ])
  const writers = { ...languages, ...Object.fromEntries(given) }
  const radios = addChoice(box, Object.keys(writers), `language-${index}`)
  return { pre: box.querySelector('pre'), form: operation.querySelector('form'), writers, radios }
})

function addChoice(box, names, group) {
  const choice = document.createElement('fieldset')
  const legend = document.createElement('legend')
  choice.className = 'tabs'
  legend.textContent = 'Code sample'
  choice.append(legend)
  box.prepend(choice)
  return names.map((name) => {
    const label = document.createElement('label')
    const radio = document.createElement('input')
    Object.assign(radio, { type: 'radio', name: group, value: name })
    radio.addEventListener('change', () => {
      language = name
      writeSamples()
    })
    label.append(radio, name)
    choice.append(label)
    return radio
  })
}

function writeSamples() {
  for (const { pre, form, writers, radios } of samples) {
    const chosen = language in writers ? language : 'curl'
    for (const radio of radios) radio.checked = radio.value === chosen
    const call = callOf(form)
    const isOpen = writeField?.checked && keyField.value !== ''
    const sample = writers[chosen](isOpen ? withKey(call) : call)
    const text = isOpen ? sample.replaceAll('<API_KEY>', keyField.value) : sample
    if (pre.textContent !== text) write(pre, text)
  }
}

for (const form of forms) {
  const operation = form.closest('.operation')
  form.hidden = false
  operation.querySelector('.to-form').hidden = false
  form.addEventListener('input', writeSamples)
  // What is worked with stays when the search is over.
  form.addEventListener('focusin', () => keep(operation))
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    send(form)
  })
  for (const response of operation.querySelectorAll('.response')) {
    // Its example is the one that is shown.
    response.querySelector('summary').addEventListener('click', () => {
      const tab = operation.querySelector(`.examples [value="${response.dataset.status}"]`)
      if (tab && !response.open) tab.checked = true
    })
  }
}

if (keyField) {
  keyField.value = stored() ?? ''
  keepField.checked = keyField.value !== ''
  for (const field of [keyField, keepField, writeField]) field.addEventListener('input', onKey)
  keyField.form.addEventListener('submit', (event) => event.preventDefault())
  keyField.form.hidden = false
  onKey()
} else writeSamples()

unfold()
