// Gives the page life: search, and forms that send what they show. Nothing is kept, and nothing is
// sent anywhere but to the server that the page came from, whatever its public address is.
import { languages } from './samples.js'

const base = new URL('../v1', location.href).href
const entries = [...document.querySelectorAll('.entry')]
const forms = [...document.querySelectorAll('form.trial')]

// --- Addresses: what a link points to, or stands in, is unfolded.

function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  for (let at = target; at; at = at.parentElement) if (at.localName === 'details') at.open = true
  target?.scrollIntoView()
}
addEventListener('hashchange', unfold)
for (const link of document.querySelectorAll('a[href^="#"]')) {
  // The address may be there already, with its entry folded up or hidden by the search.
  link.addEventListener('click', () => {
    search.value = ''
    find()
    if (link.hash === location.hash) unfold()
  })
}

for (const entry of entries) {
  entry.querySelector('summary').addEventListener('click', () => {
    if (!entry.open) history.replaceState(null, '', `#${entry.id}`)
  })
}

// --- Search: entries that have all the words; what has one that its entry's line has not is unfolded.

const search = document.getElementById('search')
const found = document.getElementById('found')
const textOf = (node) => node.textContent.toLowerCase()
const searched = entries.map((entry) => {
  const line = textOf(entry.querySelector('summary'))
  const inside = entry.querySelector('.reference') ?? entry.querySelector('.inside')
  const parts = [entry, ...inside.querySelectorAll('details:not([open])')]
  const texts = parts.map((part) => [part, textOf(part === entry ? inside : part)])
  return { entry, line, text: `${line} ${textOf(inside)}`, texts }
})
const unfolded = new Set()

function find() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
  const counts = {}
  for (const { entry, line, text, texts } of searched) {
    entry.hidden = !words.every((word) => text.includes(word))
    const kind = entry.dataset.entry
    if (!entry.hidden) counts[kind] = (counts[kind] ?? 0) + 1
    for (const [part, content] of texts) {
      const has = words.some((word) => !line.includes(word) && content.includes(word))
      if (has && !entry.hidden && !part.open) {
        part.open = true
        unfolded.add(part)
      } else if (!has && unfolded.delete(part)) part.open = false
    }
  }
  for (const part of document.querySelectorAll('main > :not(h1, #found)')) {
    part.hidden = words.length > 0 && !part.querySelector('.entry:not([hidden])')
  }
  const list = Object.entries(counts).map(([kind, n]) => `${n} ${kind}${n === 1 ? '' : 's'}`)
  found.textContent = words.length > 0 ? `Found: ${list.join(', ') || 'nothing'}` : ''
}
search.addEventListener('input', find)
search.closest('search').hidden = false

// --- Where forms send to.

const server = [...document.querySelectorAll('.server')].find((one) => one.textContent === base)
if (server) server.after(' (this page sends here)')
document.getElementById('here').hidden = server !== undefined
for (const target of document.querySelectorAll('.target')) target.textContent = base

// --- Forms.

/** The field of a form for the key, or for the body. */
const fieldOf = (form, place) => form.querySelector(`[data-in=${place}]`)

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
  const body = fieldOf(form, 'body')?.value
  if (body !== undefined) headers.push(['Content-Type', 'application/json'])
  const url = base + path + (query && `?${query}`)
  return { method: form.dataset.method, url, keyed: fieldOf(form, 'key') !== null, headers, body }
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
  const button = form.querySelector('[type=submit]')
  if (button.ariaBusy === 'true') return // who clicks twice adds no second animal
  button.ariaBusy = 'true'
  const { method, url, headers, body } = callOf(form)
  const box = form.querySelector('.answer')
  const [text, names] = box.querySelectorAll('pre')
  const state = box.querySelector('[role=status]')
  const result = box.querySelector('.result')
  result.hidden = true
  box.dataset.kind = ''
  state.textContent = 'Sending …'
  const began = performance.now()
  try {
    const key = fieldOf(form, 'key')?.value
    const all = key ? [['Authorization', `Bearer ${key}`], ...headers] : headers
    const response = await fetch(url, { method, headers: all, body })
    const content = await response.text()
    const duration = Math.round(performance.now() - began)
    const documented = form.parentElement.querySelector(`[data-status="${response.status}"]`)
    // HTTP/2 has no words for a status.
    const words = response.statusText || documented?.querySelector('.description').textContent || ''
    const known = [...(documented?.querySelectorAll('.names code') ?? [])].map(textOf)
    names.textContent = [...response.headers]
      .sort(([one], [other]) => known.includes(other) - known.includes(one))
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n')
    text.textContent = pretty(content)
    text.hidden = text.previousElementSibling.hidden = content === ''
    offerNext(form, response.headers.get('Link'))
    result.hidden = false
    box.dataset.kind = String(response.status)[0]
    state.textContent = `${response.status} ${words} · ${duration} ms`
  } catch (error) {
    box.dataset.kind = '5'
    state.textContent = `There was no answer: ${error.message}`
  }
  button.ariaBusy = 'false'
}

/** Offers to send what `rel="next"` of a `Link` header asks for. */
function offerNext(form, link) {
  const [, next] = /<([^<>]*)>; *rel="next"/.exec(link ?? '') ?? []
  const button = form.querySelector('.next')
  button.hidden = next === undefined
  button.onclick = () => {
    for (const [name, value] of new URL(next, base).searchParams) {
      if (form.elements[name]) form.elements[name].value = value
    }
    writeSample(form)
    form.querySelector('[type=submit]').focus() // this button goes
    form.requestSubmit()
  }
}

/** A button that copies what stands in a block of code. */
function addCopy(bar, code) {
  const copy = document.createElement('button')
  copy.type = 'button'
  copy.className = 'copy'
  copy.textContent = 'Copy'
  copy.ariaLive = 'polite'
  copy.addEventListener('click', async () => {
    const copied = navigator.clipboard?.writeText(code.textContent) ?? Promise.reject()
    copy.textContent = await copied.then(
      () => 'Copied',
      () => 'The browser refuses: select and copy',
    )
    setTimeout(() => {
      copy.textContent = 'Copy'
    }, 2_000)
  })
  bar.append(copy)
}

/** The code samples of a form, with a choice of the language that holds for all forms. */
function addSamples(form, index) {
  const choice = document.createElement('fieldset')
  const legend = document.createElement('legend')
  legend.textContent = 'Code sample'
  choice.append(legend)
  for (const language of Object.keys(languages)) {
    const label = document.createElement('label')
    const radio = document.createElement('input')
    Object.assign(radio, { type: 'radio', name: `language-${index}`, value: language })
    radio.checked = language === 'curl'
    radio.addEventListener('change', () => choose(language))
    label.append(radio, language)
    choice.append(label)
  }
  form.querySelector('.samples .bar').append(choice)
}

let language = 'curl'

function choose(chosen) {
  language = chosen
  for (const form of forms) {
    for (const radio of form.querySelectorAll('[type=radio]')) {
      radio.checked = radio.value === chosen
    }
    writeSample(form)
  }
}

function writeSample(form) {
  form.querySelector('.samples pre').textContent = languages[language](callOf(form))
}

for (const [index, form] of forms.entries()) {
  addSamples(form, index)
  for (const bar of form.querySelectorAll('.bar')) addCopy(bar, bar.nextElementSibling)
  writeSample(form)
  form.hidden = false
  form.parentElement.querySelector('.to-form').hidden = false
  form.addEventListener('input', ({ target }) => {
    if (target.dataset.in !== 'key') return writeSample(form)
    for (const field of document.querySelectorAll('[data-in=key]')) field.value = target.value
  })
  // What is worked with stays when the search is over.
  form.addEventListener('focusin', () => unfolded.delete(form.closest('.entry')))
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    send(form)
  })
}

unfold()
