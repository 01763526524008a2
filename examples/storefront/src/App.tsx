/** The frame of every page: the header, the key, and what the address asks for. */

import type { Pet } from '@petstore-catalogue/petstore/client'
import { QueryClientProvider } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { AddPet } from './AddPet.tsx'
import { Catalogue } from './Catalogue.tsx'
import { KeyForm } from './KeyForm.tsx'
import { Nothing } from './Nothing.tsx'
import { Page } from './Page.tsx'
import { PetPage } from './PetPage.tsx'
import { connect, mayAdd, TRPCProvider } from './petstore.ts'
import { links, type Route, useRoute } from './route.ts'
import { shopName } from './shop.ts'

const STORED_KEY = 'petstore-key'

interface Visit {
  /** Empty outside the door. */
  apiKey: string
  /** The key that is not taken any longer, if that is why one is outside. */
  expired?: string
}

export function App() {
  const route = useRoute()
  const [{ apiKey, expired }, setVisit] = useState<Visit>(() => ({
    apiKey: sessionStorage.getItem(STORED_KEY) ?? '',
  }))
  // Kept for this tab only, until it is closed.
  useEffect(() => sessionStorage.setItem(STORED_KEY, apiKey), [apiKey])
  const connection = useMemo(
    () => connect(apiKey, () => setVisit({ apiKey: '', expired: apiKey })),
    [apiKey],
  )

  return (
    <>
      <header className="top">
        <a className="brand" href={links.catalogue()}>
          <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width="36" height="36" />
          {shopName}
        </a>
        {apiKey && route.page !== 'add' && mayAdd(apiKey) && (
          <nav aria-label="Main">
            <a className="button" href={links.add(route.filter)}>
              Add an animal
            </a>
          </nav>
        )}
      </header>
      <main>
        {apiKey ? (
          <QueryClientProvider client={connection.queryClient}>
            <TRPCProvider {...connection}>
              <CurrentPage route={route} />
            </TRPCProvider>
          </QueryClientProvider>
        ) : (
          <KeyForm expired={expired} onEnter={(apiKey) => setVisit({ apiKey })} />
        )}
      </main>
      {apiKey && (
        <footer className="bottom">
          <button type="button" className="quiet" onClick={() => setVisit({ apiKey: '' })}>
            Leave
          </button>
        </footer>
      )}
    </>
  )
}

function CurrentPage({ route }: { route: Route }) {
  // Told on the page of the animal just added, and forgotten when that is left.
  const [added, setAdded] = useState<Pet>()
  const isThere = route.page === 'pet' && route.id === added?.id
  if (added && !isThere && route.page !== 'add') setAdded(undefined)

  return (
    <>
      {/* Always there, since only a change within it is announced. */}
      <p className="said" role="status">
        {isThere && `${added.name} has been added.`}
      </p>
      <PageOf route={route} onAdded={setAdded} />
    </>
  )
}

function PageOf({ route, onAdded }: { route: Route; onAdded(pet: Pet): void }) {
  switch (route.page) {
    case 'catalogue':
      return <Catalogue filter={route.filter} />
    case 'pet':
      return <PetPage key={String(route.id)} id={route.id} filter={route.filter} />
    case 'add':
      return <AddPet filter={route.filter} onAdded={onAdded} />
    case 'unknown':
      return (
        <Page title="Nothing here">
          <Nothing>
            <p>This address leads nowhere.</p>
            <a className="button" href={links.catalogue()}>
              See our animals
            </a>
          </Nothing>
        </Page>
      )
  }
}
