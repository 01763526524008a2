/**
 * The page that documents the service by its OpenAPI document: HTML that is written once, and is
 * readable without scripts.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { inline, type OpenApi, type Route, readDocument, routesOf, toJson } from './document.ts'
import { anchor, type Chapter, chaptersOf, type Html, html, phrase, prose } from './html.ts'
import { operationEntry } from './operation.ts'
import { tree } from './schema.ts'

const file = (type: string, name: string) => ({
  type,
  read: () => readFileSync(path.join(import.meta.dirname, '../assets', name)),
})

/** The files that the page loads from its own folder, by name, with their media types. */
export const assets = {
  'docs.css': file('text/css; charset=utf-8', 'docs.css'),
  'docs.js': file('text/javascript; charset=utf-8', 'docs.js'),
  'icon.svg': file('image/svg+xml', 'icon.svg'),
}

/** What the page links to as `openapi.json`, beside itself: the document on many lines. */
export const download = (text: string): string => `${toJson(readDocument(text))}\n`

/**
 * The HTML of the page for the JSON text of the document. `api` is where its forms send to, as an
 * address relative to the page.
 */
export function docsPage(text: string, api: string): string {
  const document = readDocument(text)
  const { title, version, description } = document.info
  const { introduction, chapters } = chaptersOf(description)
  const routes = routesOf(document)
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>${title}: the REST interface</title>
    <link rel="icon" href="icon.svg">
    <link rel="stylesheet" href="docs.css">
    <script src="docs.js" type="module"></script>
  </head>
  <body data-api="${api}">
    <nav aria-label="Contents">
      <a class="brand" href="#top"><img src="icon.svg" alt="" width="28" height="28">${title}</a>
      <details open>
        <summary>Contents</summary>
        <ul>${contents(document, routes, chapters)}</ul>
      </details>
    </nav>
    <main id="top">
      <div class="pair">
        <div class="words">
          <h1>${title} <small>${version}</small></h1>
          ${introduction}
          ${facts(document)}
        </div>
        ${authentication(document)}
      </div>
      ${document.tags?.map(({ name, description }) =>
        section(
          `tag-${name}`,
          name,
          html`${prose(description)}${routes
            .filter(({ operation }) => operation.tags?.includes(name))
            .map((route) => operationEntry(document, route))}`,
        ),
      )}
      ${section('guides', 'Guides', html`${chapters.map(guide)}`)}
      ${section('schemas', 'Schemas', html`<div class="grid">${schemas(document)}</div>`)}
      ${section('headers', 'Response headers', html`<div class="grid">${headers(document)}</div>`)}
    </main>
  </body>
</html>
`.text
}

const section = (id: string, heading: string, inside: Html): Html => html`
      <section aria-labelledby="${id}">
        <h2 id="${id}">${heading}${anchor(id)}</h2>
        ${inside}
      </section>`

function contents({ tags, components }: OpenApi, routes: Route[], chapters: Chapter[]): Html[] {
  const link = (id: string, title: Html | string) => html`<a href="#${id}">${title}</a>`
  const list = (id: string, title: string, below: Html[]) =>
    html`<li>${link(id, title)}<ul>${below.map((one) => html`<li>${one}</li>`)}</ul></li>`
  const names = (kind: string, part: object = {}) =>
    Object.keys(part).map((name) => link(`${kind}-${name}`, name))
  const operations = (tag: string) =>
    routes
      .filter(({ operation }) => operation.tags?.includes(tag))
      .map(({ method, operation: { operationId: id, summary = id } }) =>
        link(
          id,
          html`<span class="method ${method.toLowerCase()}">${method}</span> <span>${summary}</span>`,
        ),
      )
  return [
    html`<li>${link('authentication', 'Authentication')}</li>`,
    ...(tags ?? []).map(({ name }) => list(`tag-${name}`, name, operations(name))),
    list(
      'guides',
      'Guides',
      chapters.map(({ id, heading }) => link(id, heading)),
    ),
    list('schemas', 'Schemas', names('schema', components.schemas)),
    list('headers', 'Response headers', names('header', components.headers)),
  ]
}

const facts = ({ info, servers = [] }: OpenApi): Html => html`
          <dl class="facts">
            ${servers.map(
              ({ url, description = 'Server' }) =>
                html`<div><dt>${description}</dt><dd><code>${url}</code></dd></div>`,
            )}
            <div><dt>OpenAPI</dt><dd><a href="openapi.json" download>Download openapi.json</a></dd></div>
            ${info.license && html`<div><dt>License</dt><dd>${info.license.name}</dd></div>`}
          </dl>`

/** How a request says whose it is, with the one field for the key of all forms. */
const authentication = ({ components }: OpenApi): Html => html`
        <section class="code" aria-labelledby="authentication">
          <h2 id="authentication">Authentication${anchor('authentication')}</h2>
          ${Object.values(components.securitySchemes ?? {}).map(({ description }) => prose(description))}
          <form class="key" hidden>
            <label for="key">API key</label>
            <input id="key" type="password" autocomplete="new-password" autocapitalize="off" spellcheck="false" aria-describedby="key-hint">
            <p class="hint" id="key-hint">All forms on this page send it.</p>
            <label class="choice"><input id="keep" type="checkbox">Keep it in this tab until I close the tab</label>
          </form>
        </section>`

/** A part of the description of the document, with its code beside it. */
const guide = ({ id, heading, words, code }: Chapter): Html => html`
      <article class="pair" id="${id}">
        <div class="words"><h3>${phrase(heading)}${anchor(id)}</h3>${words}</div>
        ${code.length > 0 && html`<div class="code">${code}</div>`}
      </article>`

const schemas = (document: OpenApi): Html[] =>
  Object.entries(document.components.schemas ?? {}).map(
    ([name, schema]) => html`
      <article id="schema-${name}">
        <h3><code>${name}</code>${anchor(`schema-${name}`)}</h3>
        ${prose(schema.description)}
        ${tree(document, schema)}
      </article>`,
  )

const headers = ({ components }: OpenApi): Html[] =>
  Object.entries(components.headers ?? {}).map(
    ([name, { description, example }]) => html`
      <article id="header-${name}">
        <h3><code>${name}</code>${anchor(`header-${name}`)}</h3>
        ${prose(description)}
        ${example !== undefined && html`<p class="bounds">Example: <code>${inline(example)}</code></p>`}
      </article>`,
  )
