"""The stems of the synthetic corpus: each English noun, verb and adjective with its one German translation.

The rows hold what cannot be derived (gender, plural, strong forms); english.py and german.py inflect the
rest. Left out are words that would make a source ambiguous: verbs whose past equals their base (read, put),
nouns whose plural equals their singular (sheep), and words that are both noun and verb (cook, fly).

The place of a row in its table is the rank of its word: earlier ones are drawn more often.

Kinds say what goes with what, one letter each; a noun has some, a verb or an adjective lists those it
accepts: P person, A animal, F food, D drink, V vehicle, B building or place, U furniture, S surface, T
thing, E electric, I instrument, O opens and shuts, R something to read, K clothing.
"""

from __future__ import annotations

# Kinds, then rows: english[:plural] German gender plural. mw: weak masculine (den Studenten); -: mass noun.
NOUNS = {
    "P": """
        man:men Mann m Männer; woman:women Frau f Frauen; child:children Kind n Kinder; boy Junge mw Jungen;
        teacher Lehrer m Lehrer; student Student mw Studenten; doctor Arzt m Ärzte;
        neighbor Nachbar mw Nachbarn; nurse Krankenschwester f Krankenschwestern; friend Freund m Freunde;
        brother Bruder m Brüder; sister Schwester f Schwestern; mother Mutter f Mütter; father Vater m Väter;
        son Sohn m Söhne; daughter Tochter f Töchter; uncle Onkel m Onkel; aunt Tante f Tanten;
        king König m Könige; grandmother Großmutter f Großmütter; grandfather Großvater m Großväter;
        queen Königin f Königinnen; farmer Bauer mw Bauern; baker Bäcker m Bäcker; painter Maler m Maler;
        lawyer Anwalt m Anwälte; actress Schauspielerin f Schauspielerinnen;
        waitress Kellnerin f Kellnerinnen; guest Gast m Gäste; princess Prinzessin f Prinzessinnen;
        policeman:policemen Polizist mw Polizisten; niece Nichte f Nichten; soldier Soldat mw Soldaten;
        engineer Ingenieur m Ingenieure; baby Baby n Babys; customer Kunde mw Kunden;
        thief:thieves Dieb m Diebe; nephew Neffe mw Neffen""",
    "A": """
        dog Hund m Hunde; cat Katze f Katzen; horse Pferd n Pferde; cow Kuh f Kühe; bird Vogel m Vögel;
        mouse:mice Maus f Mäuse; pig Schwein n Schweine; chicken Huhn n Hühner; goose:geese Gans f Gänse;
        rabbit Kaninchen n Kaninchen; bear Bär mw Bären; lion Löwe mw Löwen; elephant Elefant mw Elefanten;
        monkey Affe mw Affen; fox Fuchs m Füchse; wolf:wolves Wolf m Wölfe; goat Ziege f Ziegen;
        snake Schlange f Schlangen; crocodile Krokodil n Krokodile; camel Kamel n Kamele; lamb Lamm n Lämmer;
        turtle Schildkröte f Schildkröten""",
    "F": """
        apple Apfel m Äpfel; pear Birne f Birnen; egg Ei n Eier; cake Kuchen m Kuchen;
        banana Banane f Bananen; potato:potatoes Kartoffel f Kartoffeln; tomato:tomatoes Tomate f Tomaten;
        roll Brötchen n Brötchen; lemon Zitrone f Zitronen; sausage Wurst f Würste; cookie Keks m Kekse;
        bread Brot n -; cheese Käse m -; meat Fleisch n -; rice Reis m -; chocolate Schokolade f -;
        honey Honig m -""",
    "D": """
        water Wasser n -; milk Milch f -; coffee Kaffee m -; tea Tee m -; beer Bier n -; wine Wein m -;
        lemonade Limonade f -""",
    "V": """
        car Auto n Autos; bus Bus m Busse; train Zug m Züge; bicycle Fahrrad n Fahrräder;
        ship Schiff n Schiffe; truck Lastwagen m Lastwagen; taxi Taxi n Taxis;
        tram Straßenbahn f Straßenbahnen; carriage Kutsche f Kutschen""",
    "B": """
        house Haus n Häuser; garden Garten m Gärten; school Schule f Schulen; church Kirche f Kirchen;
        room Zimmer n Zimmer; kitchen Küche f Küchen; city Stadt f Städte; village Dorf n Dörfer;
        forest Wald m Wälder; park Park m Parks; shop Laden m Läden; hotel Hotel n Hotels;
        museum Museum n Museen; hospital Krankenhaus n Krankenhäuser; library Bibliothek f Bibliotheken;
        factory Fabrik f Fabriken; castle Schloss n Schlösser; cellar Keller m Keller;
        garage Garage f Garagen; office Büro n Büros; cave Höhle f Höhlen; tower Turm m Türme""",
    "US": """
        table Tisch m Tische; chair Stuhl m Stühle; bench Bank f Bänke; bed Bett n Betten; sofa Sofa n Sofas;
        carpet Teppich m Teppiche; shelf:shelves Regal n Regale; mat Matte f Matten""",
    "S": """
        roof Dach n Dächer; wall Mauer f Mauern; hill Hügel m Hügel; bridge Brücke f Brücken;
        stage Bühne f Bühnen""",
    "T": """
        ball Ball m Bälle; key Schlüssel m Schlüssel; bag Tasche f Taschen; knife:knives Messer n Messer;
        spoon Löffel m Löffel; fork Gabel f Gabeln; cup Tasse f Tassen; bottle Flasche f Flaschen;
        plate Teller m Teller; clock Uhr f Uhren; umbrella Regenschirm m Regenschirme; picture Bild n Bilder;
        mirror Spiegel m Spiegel; basket Korb m Körbe; candle Kerze f Kerzen; toy Spielzeug n Spielzeuge;
        doll Puppe f Puppen; ring Ring m Ringe; coin Münze f Münzen; flower Blume f Blumen;
        pencil Bleistift m Bleistifte; hammer Hammer m Hämmer; rope Seil n Seile; pillow Kissen n Kissen""",
    "TE": """
        lamp Lampe f Lampen; computer Computer m Computer; radio Radio n Radios; machine Maschine f Maschinen;
        camera Kamera f Kameras; television Fernseher m Fernseher""",
    "TI": """
        guitar Gitarre f Gitarren; violin Geige f Geigen; piano Klavier n Klaviere; flute Flöte f Flöten""",
    "TO": """
        suitcase Koffer m Koffer; crate Kiste f Kisten""",
    "O": """
        door Tür f Türen; window Fenster n Fenster; gate Tor n Tore; drawer Schublade f Schubladen""",
    "R": """
        book Buch n Bücher; letter Brief m Briefe; newspaper Zeitung f Zeitungen; poem Gedicht n Gedichte;
        story Geschichte f Geschichten; novel Roman m Romane; report Bericht m Berichte;
        contract Vertrag m Verträge; postcard Postkarte f Postkarten; diary Tagebuch n Tagebücher""",
    "K": """
        shirt Hemd n Hemden; skirt Rock m Röcke; dress Kleid n Kleider; coat Mantel m Mäntel; hat Hut m Hüte;
        shoe Schuh m Schuhe; jacket Jacke f Jacken; scarf:scarves Schal m Schals; cap Mütze f Mützen;
        glove Handschuh m Handschuhe; blouse Bluse f Blusen""",
}

# Frame, then rows: english[:past] german[:third person[:participle]][+] subjects [objects [english preposition,
# german preposition, case]]. a+b: the English particle moves (turn it on); a_b: it stays (look for it).
# prefix|verb: the German prefix separates. The third person is without the prefix, the participle with it.
# +: the perfect is with sein. Verbs of position and motion list the kinds of their places under objects.
VERBS = {
    "intransitive": """
        sleep:slept schlafen:schläft:geschlafen PA; get_up:got auf|stehen::aufgestanden+ PA;
        arrive an|kommen::angekommen+ PAV; laugh lachen P; come_back:came zurück|kommen::zurückgekommen+ PA;
        sing:sang singen::gesungen P; swim:swam schwimmen::geschwommen+ PA; wake_up:woke auf|wachen+ PA;
        cry weinen P; dance tanzen P; snore schnarchen PA; smile lächeln P;
        fall_asleep:fell ein|schlafen:schläft:eingeschlafen+ PA; depart ab|fahren:fährt:abgefahren+ V;
        disappear verschwinden::verschwunden+ PATRKV; yawn gähnen PA; burn brennen::gebrannt BUVR;
        flee:fled fliehen::geflohen+ PA; go_away:went weg|gehen::weggegangen+ PA; stumble stolpern+ PA""",
    "transitive": """
        see:saw sehen:sieht:gesehen PA PAVBUSTORK; find:found finden::gefunden PA PAVBUTRK;
        turn+on ein|schalten P E; buy:bought kaufen P FDVUTRK; open auf|machen P O;
        call an|rufen::angerufen P P; look_for suchen PA PATRKV; eat:ate essen:isst:gegessen PA F;
        invite ein|laden:lädt:eingeladen P P; drink:drank trinken::getrunken PA D; close zu|machen P O;
        love lieben P PAFDBIRK; hear:heard hören PA PAVEI; sell:sold verkaufen P FDVUTRK;
        pick+up ab|holen P PV; take+along:took mit|nehmen:nimmt:mitgenommen P PAFTRK;
        meet:met treffen:trifft:getroffen P P; throw+away:threw weg|werfen:wirft:weggeworfen P FTRK;
        write:wrote schreiben::geschrieben P R; visit besuchen P PB; need brauchen P FDVUTRK;
        hate hassen P PAFDBR; paint malen P AVBUS; build:built bauen P BVUS; repair reparieren P VUTO;
        wash waschen:wäscht:gewaschen P KVO; know:knew kennen::gekannt P PBR;
        forget:forgot vergessen:vergisst:vergessen P PTRK; lose:lost verlieren::verloren P TRK;
        steal:stole stehlen:stiehlt:gestohlen PA FVTRK; hide:hid verstecken P FTRK;
        lock ab|schließen::abgeschlossen P O; turn+off aus|schalten P E; tidy+up auf|räumen P B;
        try+on:tried an|probieren P K; look_at an|sehen:sieht:angesehen PA PAVBTRK; watch beobachten PA PAV;
        chase jagen PA A; bite:bit beißen::gebissen A PA; feed:fed füttern P A; greet grüßen P P;
        praise loben P PA; understand:understood verstehen::verstanden P PR; admire bewundern P PABRK;
        destroy zerstören PA BUTRV; describe beschreiben::beschrieben P PABRTV;
        choose:chose aus|suchen P FVUTRK; pack ein|packen P TRK; borrow aus|leihen::ausgeliehen P VTR;
        play spielen P I; catch:caught fangen:fängt:gefangen PA A; protect beschützen P PAB; save retten P PA;
        miss vermissen P PA; eat+up:ate auf|essen:isst:aufgegessen PA F;
        examine untersuchen::untersucht P PAVT; touch berühren PA TKUV""",
    "dative": """
        help helfen:hilft:geholfen P PA; thank danken P P; listen_to zu|hören P P; follow folgen+ PA PAV;
        belong_to gehören AVBTRK P; answer antworten P P; congratulate gratulieren P P;
        trust vertrauen P PA""",
    "ditransitive": """
        give:gave geben:gibt:gegeben P FTRK; show zeigen P AVBTRKU; offer an|bieten::angeboten P FDVTK;
        send:sent schicken P FTRK; bring:brought bringen::gebracht P FDTRK; lend:lent leihen::geliehen P VTRK;
        promise versprechen:verspricht:versprochen P TRK""",
    "motion": """
        go:went gehen::gegangen+ PA BPSU; run:ran laufen:läuft:gelaufen+ PA BPSUV;
        come:came kommen::gekommen+ PA BP; return zurück|kehren+ PA BP;
        drive:drove fahren:fährt:gefahren+ PV B; jump springen::gesprungen+ PA SU; climb klettern+ PA S;
        crawl kriechen::gekrochen+ PA BUV""",
    "position": """
        sit:sat sitzen::gesessen PA BSUV; stand:stood stehen::gestanden PAUV BSUV;
        lie:lay liegen::gelegen PATRK BSU; live wohnen P B; work arbeiten P B""",
    "placing": """
        place legen P TRK; throw:threw werfen:wirft:geworfen P TRK; carry tragen:trägt:getragen PA TRKU;
        push schieben::geschoben P VU; pull ziehen::gezogen PA VU""",
    "prepositional": """
        wait warten P PV for auf accusative; talk sprechen:spricht:gesprochen P PABRV about über accusative;
        dream träumen P PABVK of von dative; ask bitten::gebeten P FDTRK for um accusative;
        think:thought denken::gedacht P PABR of an accusative; count zählen P PAV on auf accusative""",
    "weather": """
        rain regnen -; snow schneien -""",
    "content": """
        say:said sagen P; believe glauben P; hope hoffen P; claim behaupten P; fear fürchten P;
        notice bemerken P""",
}

# Rows: english german[:stem before endings] kinds.
ADJECTIVES = """
        old alt PAVBUSTORK; big groß PAVBUSTORK; small klein PAVBUSTORK; beautiful schön PAVBUSTORK;
        ugly hässlich PAVBUSTORK; strange seltsam PAVBUSTORK; famous berühmt PBR; new neu VBUSTORK;
        white weiß AVBUTOK; black schwarz AVBUTOK; brown braun AVUTOK; gray grau AVBUTOK; red rot VBUSTOK;
        blue blau VBUTOK; green grün VBUTOK; yellow gelb VBUTOK; tired müde:müd PA; hungry hungrig PA;
        thirsty durstig PA; sick krank PA; angry wütend PA; sad traurig PA; happy glücklich PA;
        brave mutig PA; curious neugierig PA; clever klug PA; lazy faul PA; strong stark PA; young jung PA;
        friendly freundlich PA; nervous nervös PA; dangerous gefährlich AV; rich reich P; poor arm P;
        polite höflich P; proud stolz P; honest ehrlich P; jealous eifersüchtig P;
        expensive teuer:teur FDVBUTRK; cheap billig FDVUTRK; broken kaputt VUTO; heavy schwer UTO;
        light leicht UTK; dirty schmutzig VBUTOK; wet nass USTOK; dry trocken USK; modern modern VBUTE;
        valuable wertvoll VUTR; dark dunkel:dunkl B; warm warm FDBK; cold kalt FDB; hot heiß FD;
        fresh frisch F; sweet süß FD; delicious lecker FD; sour sauer:saur FD; long lang RS; short kurz R;
        boring langweilig R; interesting interessant RB; funny lustig R; thick dick RK; soft weich UK;
        comfortable bequem UK; fast schnell VA; slow langsam VA; loud laut VEI; useful nützlich VT;
        high hoch:hoh S; wide breit S; secret geheim R; round rund U"""
