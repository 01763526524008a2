/**
 * A page that documents an HTTP API by its OpenAPI 3.1 document: HTML that is written once, and is
 * readable without scripts.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import {
  examplesOf,
  exampleText,
  inline,
  type OpenApi,
  type Operation,
  operationsOf,
  readDocument,
  resolve,
  schemaOf,
  toJson,
} from './document.ts'
import {
  anchor,
  type Chapter,
  chaptersOf,
  codeBlock,
  type Html,
  html,
  linked,
  phrase,
  prose,
  sampleBlock,
  withoutLinks,
} from './html.ts'
import { slugOf, uniqueIds } from './ids.ts'
import { operationEntry } from './operation.ts'
import { curlOf } from './sample.ts'
import { tree } from './schema.ts'

const file = (type: string, name: string) => ({
  type,
  read: () => readFileSync(path.join(import.meta.dirname, '../assets', name)),
})

const SCRIPT = 'text/javascript; charset=utf-8'

/** The files that the page loads from its own folder, by name, with their media types. */
export const assets = {
  'docs.css': file('text/css; charset=utf-8', 'docs.css'),
  'docs.js': file(SCRIPT, 'docs.js'),
  'code.js': file(SCRIPT, 'code.js'),
  'samples.js': file(SCRIPT, 'samples.js'),
  'search.js': file(SCRIPT, 'search.js'),
  'icon.svg': file('image/svg+xml', 'icon.svg'),
}

/** What the page links to as `openapi.json`, beside itself: the document on many lines. */
export const download = (text: string): string => `${toJson(readDocument(text))}\n`

/** A link of the navigation, and those below it. */
interface Place {
  id: string
  title: Html | string
  below?: Place[]
}

/**
 * The HTML of the page for the JSON text of an OpenAPI document. `api` is where its forms send to, as
 * an address relative to the page; without it they send to the first server of the document.
 */
export function docsPage(text: string, api?: string): string {
  const document = readDocument(text)
  const { info } = document
  const operations = operationsOf(document)
  const { introduction, chapters } = chaptersOf(info.description)
  const tags = tagsOf(document, operations)
  const places = placesOf(document, tags, chapters)
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>${info.title}: the REST interface</title>
    <link rel="icon" href="icon.svg">
    <link rel="stylesheet" href="docs.css">
    <script src="docs.js" type="module"></script>
  </head>
  <body data-api="${api ?? document.servers?.[0]?.url ?? ''}">
    <header>
      <a class="brand" href="#top"><img src="icon.svg" alt="" width="28" height="28">${info.title}</a>
      <search hidden>
        <label for="search">Search</label>
        <input id="search" type="search" autocomplete="off" autocapitalize="off" placeholder="cursor, errors, 404 …" aria-keyshortcuts="/ Control+K">
        <kbd aria-hidden="true">/</kbd>
      </search>
    </header>
    <details class="contents" open>
      <summary>Contents</summary>
      <nav aria-label="Contents">${links(places)}</nav>
    </details>
    <main id="top">
      <h1>${info.title} <small>${info.version}</small></h1>
      <p id="found" role="status"></p>
      ${start(document, introduction, operations)}
      ${authentication(document)}
      ${tags.map((tag) => tagged(document, tag, operations[0]))}
      ${guides(chapters)}
      ${schemas(document)}
      ${headers(document)}
    </main>
  </body>
</html>
`.text
}

interface Tag {
  id: string
  name: string
  description: string | undefined
  operations: Operation[]
}

/** The tags of a document with their operations; what has no tag stands under `operations`. */
function tagsOf(document: OpenApi, operations: Operation[]): Tag[] {
  const namesOf = ({ object }: Operation) => (object.tags?.length ? object.tags : ['operations'])
  const declared = new Map(document.tags?.map(({ name, description }) => [name, description]))
  const names = new Set([...declared.keys(), ...operations.flatMap(namesOf)])
  const idOf = uniqueIds()
  return [...names]
    .map((name) => ({
      id: idOf(`tag-${slugOf(name)}`),
      name,
      description: declared.get(name),
      // One that has several is shown under the first, for its place on the page is one.
      operations: operations.filter((operation) => namesOf(operation)[0] === name),
    }))
    .filter(({ operations }) => operations.length > 0)
}

function placesOf({ components = {} }: OpenApi, tags: Tag[], chapters: Chapter[]): Place[] {
  const place = (id: string, title: string, below: Place[]): Place[] =>
    below.length > 0 ? [{ id, title, below }] : []
  const listed = (kind: string, part: object | undefined) =>
    Object.keys(part ?? {}).map((name) => ({ id: `${kind}-${name}`, title: name }))
  return [
    { id: 'top', title: 'Introduction' },
    ...(components.securitySchemes ? [{ id: 'authentication', title: 'Authentication' }] : []),
    ...tags.flatMap(({ id, name, operations }) =>
      place(
        id,
        name,
        operations.map(({ id, method, path, object }) => ({
          id,
          title: html`<span class="method ${method.toLowerCase()}">${method}</span> <span>${object.summary || path}</span>`,
        })),
      ),
    ),
    ...place(
      'guides',
      'Guides',
      chapters.map(({ id, heading }) => ({ id, title: heading })),
    ),
    ...place('schemas', 'Schemas', listed('schema', components.schemas)),
    ...place('headers', 'Response headers', listed('header', components.headers)),
  ]
}

const links = (places: Place[]): Html => html`<ul>
        ${places.map(
          ({ id, title, below }) =>
            html`<li><a href="#${id}">${title}</a>${below && links(below)}</li>`,
        )}
      </ul>`

/** What the service is, and the first of its requests with the answer. */
function start(document: OpenApi, introduction: Html, operations: Operation[]): Html {
  const { info, servers = [] } = document
  const [first] = operations
  const answer = first?.responses.flatMap(([, { content }]) => examplesOf(document, content))[0]
  return html`
      <div class="pair start">
        <div class="words">
          ${introduction}
          <dl class="facts">
            ${servers.map(
              ({ url, description }) =>
                html`<div><dt>${description || 'Server'}</dt><dd><code class="server">${url}</code></dd></div>`,
            )}
            <div id="here" hidden><dt>This page sends to</dt><dd><code class="target"></code></dd></div>
            <div><dt>OpenAPI</dt><dd><a href="openapi.json" download>Download openapi.json</a></dd></div>
            ${info.license && html`<div><dt>License</dt><dd>${info.license.name}</dd></div>`}
          </dl>
        </div>
        ${
          first &&
          html`<div class="code"><div class="stays">
          <p class="hint">The first request: <a href="#${first.id}">${first.object.summary || first.id}</a></p>
          <div data-sample-of="${first.id}">${sampleBlock(`${first.method} ${first.path}`, curlOf(document, first))}</div>
          ${answer === undefined ? undefined : codeBlock('Example answer', exampleText(answer))}
        </div></div>`
        }
      </div>`
}

/** How requests say whose they are, with the one field for the key of all forms. */
function authentication({ components }: OpenApi): Html | undefined {
  if (!components?.securitySchemes) return undefined
  const schemes = Object.entries(components.securitySchemes).map(
    ([name, { type = '', scheme, in: place, name: field, description }]) => html`
        <div>
          <dt><code class="name">${name}</code> <span class="type">${[type, scheme, place, field].filter(Boolean).join(' ')}</span></dt>
          <dd>${prose(description)}</dd>
        </div>`,
  )
  const inside = html`
      <div class="pair">
        <div class="words">
          <dl class="fields">${schemes}</dl>
          <p class="hint">Samples read the key from the environment variable <code>API_KEY</code>.</p>
        </div>
        <form class="key code" hidden>
        <label for="key">API key</label>
        <input id="key" type="password" autocomplete="off" autocapitalize="off" spellcheck="false" aria-describedby="key-hint">
        <p class="hint" id="key-hint">All forms on this page send it.</p>
        <label class="choice"><input id="keep" type="checkbox">Keep it in this tab until I close the tab</label>
        <label class="choice"><input id="write" type="checkbox">Write it into the samples</label>
        </form>
      </div>`
  return section('authentication', 'Authentication', inside, { kind: 'section' })
}

function tagged(
  document: OpenApi,
  { id, name, description, operations }: Tag,
  first: Operation | undefined,
): Html {
  const pieces = operations.map((each) => operationEntry(document, each, each === first))
  // A tag may have the name of another section.
  const label = `Operations: ${name}`
  return section(id, name, html`${prose(description)} ${pieces}`, { label })
}

/** The parts of the description of the document, each with its code beside it. */
function guides(chapters: Chapter[]): Html | undefined {
  if (chapters.length === 0) return undefined
  const pieces = chapters.map(
    ({ id, heading, words, code }) => html`
      <article class="pair" data-entry="guide" id="${id}">
        <div class="words">
          <h3>${phrase(heading)}${anchor(id, heading)}</h3>
          ${words}
        </div>
        ${code.length > 0 ? html`<div class="code"><div class="stays">${code}</div></div>` : undefined}
      </article>`,
  )
  return section('guides', 'Guides', html`${pieces}`)
}

function schemas(document: OpenApi): Html | undefined {
  const all = Object.entries(document.components?.schemas ?? {})
  if (all.length === 0) return undefined
  const pieces = all.map(([name, part]) => {
    const { description, type } = schemaOf(document, part)
    const title = html` <span class="title">${withoutLinks(description) ?? [type ?? ''].flat().join(' or ')}</span>`
    return entry('schema', name, title, tree(document, part))
  })
  return section('schemas', 'Schemas', html`${pieces}`)
}

function headers(document: OpenApi): Html | undefined {
  const all = Object.entries(document.components?.headers ?? {})
  if (all.length === 0) return undefined
  const pieces = all.map(([name, header]) => {
    const { description, example, schema } = resolve(document, header)
    const [value] = examplesOf(document, { '': { schema: schema ?? true, example } })
    const block =
      value === undefined ? undefined : codeBlock('Example', `${name}: ${inline(value)}`)
    return entry('header', name, undefined, html`${prose(description)} ${block}`)
  })
  return section('headers', 'Response headers', html`${pieces}`)
}

function section(
  id: string,
  heading: string,
  inside: Html,
  { kind, label = heading }: { kind?: string; label?: string } = {},
): Html {
  return html`
    <section aria-label="${label}"${kind && html` data-entry="${kind}"`}>
      <h2 id="${id}"><span>${heading}</span>${anchor(id, heading)}</h2>
      ${inside}
    </section>`
}

/** A component, folded up. */
const entry = (kind: string, name: string, title: Html | undefined, inside: Html): Html =>
  linked(
    `${kind}-${name}`,
    name,
    html`
      <details class="entry" data-entry="${kind}" id="${kind}-${name}">
        <summary><h3><code>${name}</code>${title}</h3></summary>
        <div class="inside">${inside}</div>
      </details>`,
  )
