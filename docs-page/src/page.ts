/**
 * A page that documents an HTTP API by its OpenAPI 3.1 document: HTML that is written once, and is
 * readable without scripts.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { inline, type OpenApi, readDocument } from './document.ts'
import { codeBlock, type Html, html, phrase, prose } from './html.ts'
import { operation } from './operation.ts'
import { content } from './schema.ts'

const file = (type: string, name: string) => ({
  type,
  read: () => readFileSync(path.join(import.meta.dirname, '../assets', name)),
})

/** The files that the page loads from its own folder, by name, with their media types. */
export const assets = {
  'docs.css': file('text/css; charset=utf-8', 'docs.css'),
  'docs.js': file('text/javascript; charset=utf-8', 'docs.js'),
  'samples.js': file('text/javascript; charset=utf-8', 'samples.js'),
  'icon.svg': file('image/svg+xml', 'icon.svg'),
}

/** The HTML of the page for the JSON text of an OpenAPI document. */
export function docsPage(text: string): string {
  const document = readDocument(text)
  const { info } = document
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
  <body>
    <header>
      <a class="brand" href="#top"><img src="icon.svg" alt="" width="32" height="32">${info.title}</a>
      <search hidden>
        <label for="search">Search</label>
        <input id="search" type="search" autocomplete="off" autocapitalize="off" placeholder="cursor, POST, 404 …">
      </search>
    </header>
    <main id="top">
      <h1>${info.title} <small>${info.version}</small></h1>
      <p id="found" role="status"></p>
      ${introduction(document)}
      ${authentication(document)}
      ${document.tags.map((tag) => tagged(document, tag))}
      ${schemas(document)}
      ${headers(document)}
    </main>
  </body>
</html>
`.text
}

function introduction({ info, servers, paths }: OpenApi): Html {
  return html`
    <div class="introduction">
      <div>
        ${prose(info.description)}
        <nav aria-label="Operations">
          <ul>
            ${operationsOf(paths).map(
              ({ method, path, object: { operationId, summary } }) =>
                html`<li><a href="#${operationId}"><code>${method} ${path}</code> ${summary}</a></li>`,
            )}
          </ul>
        </nav>
      </div>
      <dl class="facts">
        ${servers.map(
          ({ url, description }) =>
            html`<div><dt>${description}</dt><dd><code class="server">${url}</code></dd></div>`,
        )}
        <div id="here" hidden><dt>This page sends to</dt><dd><code class="target"></code></dd></div>
        <div><dt>OpenAPI</dt><dd><a href="../v1/openapi.json">openapi.json</a></dd></div>
        <div><dt>License</dt><dd>${info.license.name}</dd></div>
      </dl>
    </div>`
}

function authentication({ components }: OpenApi): Html {
  const schemes = Object.entries(components.securitySchemes).map(
    ([name, { type, scheme, description }]) => html`
        <div>
          <dt><code class="name">${name}</code> <span class="type">${type} ${scheme}</span></dt>
          <dd>${prose(description)}</dd>
        </div>`,
  )
  const inside = html`<dl class="fields">${schemes}</dl>`
  return section('authentication', 'Authentication', inside)
}

const operationsOf = (paths: OpenApi['paths']) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, object]) => ({
      method: method.toUpperCase(),
      path,
      object,
    })),
  )

function tagged(document: OpenApi, { name, description }: OpenApi['tags'][number]): Html {
  const pieces = operationsOf(document.paths)
    .filter(({ object }) => object.tags.includes(name))
    .map(({ method, path, object }) => operation(document, method, path, object))
  return section(`tag-${name}`, name, html`${prose(description)} ${pieces}`)
}

function schemas(document: OpenApi): Html {
  const pieces = Object.entries(document.components.schemas).map(([name, schema]) => {
    const title = html` <span class="title">${phrase(schema.description)}</span>`
    return entry('schema', name, title, content(document, schema))
  })
  return section('schemas', 'Schemas', html`<div class="columns">${pieces}</div>`)
}

function headers({ components }: OpenApi): Html {
  const pieces = Object.entries(components.headers).map(([name, { description, example }]) => {
    const block = codeBlock('Example', `${name}: ${inline(example)}`)
    return entry('header', name, undefined, html`${prose(description)} ${block}`)
  })
  return section('headers', 'Response headers', html`<div class="columns">${pieces}</div>`)
}

const section = (id: string, heading: string, inside: Html): Html => html`
    <section aria-labelledby="${id}">
      <h2 id="${id}">${heading}</h2>
      ${inside}
    </section>`

/** A component, folded up. */
const entry = (kind: string, name: string, title: Html | undefined, inside: Html): Html => html`
      <details class="entry" data-entry="${kind}" id="${kind}-${name}">
        <summary><h3><code>${name}</code>${title}</h3></summary>
        <div class="inside">${inside}</div>
      </details>`
